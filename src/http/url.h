// Destination of a request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::http {

struct Url {
  bool tls = false;
  std::string host;  // a literal IPv6 address without its brackets
  std::uint16_t port = 80;
  std::string target = "/";  // path and query, still encoded
};

// "https://host:port/path?query"; without a scheme it is http. Errors: invalid_argument, field "url".
Result<Url> parse_url(std::string_view text);

// Resolves a Location header of a response from `base`, or a link of its page: a whole URL, or relative to
// `base`.
Result<Url> redirected(const Url& base, std::string_view location);

// Scheme, host and port are equal: credentials for one may be sent to the other.
bool same_origin(const Url& a, const Url& b);

// The Host header; omits the scheme's default port.
std::string host_header(const std::string& host, std::uint16_t port, bool tls);

}  // namespace octavo::http
