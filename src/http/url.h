#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::http {

struct Url {
  bool tls = false;
  std::string host;  // IPv6 addresses have no brackets
  std::uint16_t port = 80;
  std::string target = "/";  // path and query, percent-encoded
};

// Parses "https://host:port/path?query"; the default scheme is http. Errors: invalid_argument (field
// "url").
Result<Url> parse_url(std::string_view text);

// Resolves a Location header or a link of a page. location: a complete URL, or a URL relative to `base`.
Result<Url> redirected(const Url& base, std::string_view location);

// Returns whether scheme, host and port are equal, so that credentials for one URL may be sent to the
// other.
bool same_origin(const Url& a, const Url& b);

// Returns the value of the Host header, without the scheme's default port.
std::string host_header(const std::string& host, std::uint16_t port, bool tls);

}  // namespace octavo::http
