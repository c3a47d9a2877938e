#include "fleet/proxy/relay.h"

#include <algorithm>
#include <array>

namespace octavo::fleet {
namespace {

constexpr std::array<std::string_view, 12> kOwnHeaders{"connection",
                                                       "keep-alive",
                                                       "proxy-authenticate",
                                                       "proxy-authorization",
                                                       "te",
                                                       "trailer",
                                                       "transfer-encoding",
                                                       "upgrade",
                                                       "content-length",
                                                       "host",
                                                       "date",
                                                       "expect"};

}  // namespace

http::Headers passed_on(const http::Headers& headers) {
  http::Headers out;
  for (const auto& [name, value] : headers)
    if (std::ranges::none_of(kOwnHeaders,
                             [&](std::string_view own) { return http::equal_ignoring_case(name, own); }))
      out.add(name, value);
  return out;
}

}  // namespace octavo::fleet
