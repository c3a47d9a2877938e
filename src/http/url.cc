#include "http/url.h"

#include <algorithm>
#include <charconv>

#include "base/quoted_text.h"
#include "http/message.h"

namespace octavo::http {
namespace {

constexpr std::uint16_t default_port(bool tls) { return tls ? 443 : 80; }

constexpr std::string_view kHostCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

// Returns true for a character that a request line must not contain.
bool forbidden(char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }

std::string bracketed(const std::string& host) { return host.contains(':') ? "[" + host + "]" : host; }

// Removes dot segments (RFC 3986, section 5.2.4).
std::string without_dots(std::string_view path) {
  std::string out;
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view segment = rest.substr(0, rest.find('/', 1));  // such as "/name"
    rest.remove_prefix(segment.size());
    if (segment == "/..") out.resize(out.empty() ? 0 : out.rfind('/'));
    if (segment != "/." && segment != "/..")
      out += segment;
    else if (rest.empty())
      out += '/';
  }
  return out;
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  const auto wrong = [&] {
    return invalid("url", "must be HOST:PORT or http(s)://HOST:PORT, got {}", quoted_text(text));
  };
  if (std::ranges::any_of(text, forbidden)) return wrong();
  std::string_view rest = text;
  Url url;
  if (rest.starts_with("https://")) url.tls = true;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    if (!url.tls && rest.substr(0, scheme) != "http") return wrong();
    rest.remove_prefix(scheme + 3);
  }
  url.port = default_port(url.tls);
  const std::size_t path = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, path);
  std::string_view target = rest.substr(path);
  target = target.substr(0, target.find('#'));
  if (!target.empty()) url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);

  std::string_view host = authority;
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return wrong();
    host = authority.substr(1, bracket - 1);
    authority.remove_prefix(bracket + 1);
  } else {
    host = authority.substr(0, authority.find(':'));
    authority.remove_prefix(host.size());
  }
  if (host.empty() || host.find_first_not_of(kHostCharacters) != std::string_view::npos) return wrong();
  url.host = host;
  if (authority.empty()) return url;
  if (!authority.starts_with(':')) return wrong();
  const std::string_view port = authority.substr(1);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (parsed.ec != std::errc{} || parsed.ptr != port.data() + port.size() || url.port == 0) return wrong();
  return url;
}

Result<Url> redirected(const Url& base, std::string_view location) {
  if (location.starts_with("//")) return parse_url((base.tls ? "https:" : "http:") + std::string(location));
  if (location.empty() || location.substr(0, location.find_first_of("/?#")).contains(':'))
    return parse_url(location);
  if (std::ranges::any_of(location, forbidden))
    return invalid("url", "must not contain spaces or control characters");
  Url url = base;
  const std::string_view reference = location.substr(0, location.find('#'));
  if (reference.starts_with('/')) {
    url.target = reference;
    return url;
  }
  const std::string_view path = std::string_view(base.target).substr(0, base.target.find('?'));
  const std::size_t query = std::min(reference.find('?'), reference.size());
  url.target = query == 0 ? std::string(path)
                          : without_dots(fmt::format("{}{}", path.substr(0, path.rfind('/') + 1),
                                                     reference.substr(0, query)));
  url.target += reference.substr(query);
  return url;
}

bool same_origin(const Url& a, const Url& b) {
  return a.tls == b.tls && a.port == b.port && equal_ignoring_case(a.host, b.host);
}

std::string host_and_port(const std::string& host, int port) {
  return fmt::format("{}:{}", bracketed(host), port);
}

std::string host_header(const std::string& host, std::uint16_t port, bool tls) {
  return port == default_port(tls) ? bracketed(host) : host_and_port(host, port);
}

}  // namespace octavo::http
