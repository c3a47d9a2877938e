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

// Parses "https://host:port/path?query". Without a scheme, http is used. Returns invalid_argument on "url"
// for other texts.
Result<Url> parse_url(std::string_view text);

// Returns the URL to which `location` refers: a Location header, or a link of a page. It may be relative to
// `base`.
Result<Url> redirected(const Url& base, std::string_view location);

// Returns true if scheme, host and port are equal. Credentials for one URL may then be sent to the other.
bool same_origin(const Url& a, const Url& b);

// Returns "host:port", with brackets around an IPv6 address, as in URLs.
std::string host_and_port(const std::string& host, int port);

// Returns the value of the Host header. Leaves out the default port of the scheme.
std::string host_header(const std::string& host, std::uint16_t port, bool tls);

}  // namespace octavo::http
