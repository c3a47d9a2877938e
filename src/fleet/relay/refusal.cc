#include "fleet/relay/refusal.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "fleet/relay/json_body.h"

namespace octavo::fleet {

bool worth_a_retry(int status) {
  constexpr std::array<int, 6> kStatuses{408, 429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

bool is_backpressure(int status) { return status == 429 || status == 503; }

std::optional<std::int64_t> retry_after_s(const http::Response& answer) {
  const auto text = answer.headers.find("Retry-After");
  if (!text) return std::nullopt;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  const bool whole = error == std::errc() && end == text->data() + text->size() && seconds >= 0;
  return whole ? std::optional(seconds) : std::nullopt;
}

bool is_the_requests_own(std::string_view body) {
  const auto answer = json_object(body);
  const auto* param = answer ? find_path(*answer, {"error", "param"}) : nullptr;
  return param && param->is_string() && !param->get_string().empty();
}

}  // namespace octavo::fleet
