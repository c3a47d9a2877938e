#include "http/target.h"

#include <algorithm>

namespace octavo::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool forbidden_in_path(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '\\';
}

bool has_dot_segment(std::string_view path) {
  std::size_t begin = 1;
  for (;;) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (segment == "." || segment == "..") return true;
    if (end == path.size()) return false;
    begin = end + 1;
  }
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

Result<Target> parse_target(std::string_view target) {
  if (target == "*") return Target{"*", "*", ""};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (!target.starts_with('/')) return invalid("target", "the request target must begin with '/'");
  if (const std::size_t fragment = target.find('#'); fragment != std::string_view::npos)
    return invalid("target", "the request target must not contain a fragment");

  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view encoded = target.substr(0, mark);
  std::optional<std::string> path = percent_decoded(encoded, false);
  if (!path) return invalid("target", "the path contains an invalid percent escape");
  if (std::ranges::any_of(*path, forbidden_in_path))
    return invalid("target", "the path contains a control character or a backslash");
  if (encoded.find("//") != std::string_view::npos || has_dot_segment(*path))
    return invalid("target", "the path must not contain empty or dot segments");
  return Target{*std::move(path), std::string(encoded),
                std::string(mark < target.size() ? target.substr(mark + 1) : "")};
}

std::string percent_encoded(std::string_view path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:@!$&'()*+,;=";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
  }
  return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    return percent_decoded(equals < pair.size() ? pair.substr(equals + 1) : "", true);
  }
  return std::nullopt;
}

}  // namespace octavo::http
