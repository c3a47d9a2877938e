#include "fleet/pick/compressed_body.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "http/inflate.h"

namespace octavo::fleet {

std::expected<bool, Refusal> expand_body(http::Request& request, http::BodyShare& share,
                                         std::uint64_t bytes_max) {
  const std::string_view coding = request.headers.find("content-encoding").value_or("");
  const bool known =
      http::equal_ignoring_case(coding, "gzip") || http::equal_ignoring_case(coding, "deflate");
  if (!known || request.body.empty()) return false;
  std::string body;
  const std::uint64_t compressed = request.body.size();
  bool full = false;
  const http::Inflated result = http::inflate(request.body, bytes_max, body, [&](std::uint64_t size) {
    full = !share.grow_to(compressed + size);
    return !full;
  });
  if (full)
    return std::unexpected(Refusal{503, "the picker holds too many bytes of request bodies: retry later"});
  if (result == http::Inflated::too_large)
    return std::unexpected(
        Refusal{413, fmt::format("a request body may have at most {} bytes, also after {} is expanded",
                                 bytes_max, coding)});
  if (result == http::Inflated::malformed)
    return std::unexpected(Refusal{400, "the body does not match its Content-Encoding"});
  request.body = std::move(body);
  return true;
}

}  // namespace octavo::fleet
