#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::http {

struct Target {
  std::string path;     // percent-decoded once
  std::string encoded;  // path as sent
  std::string query;    // percent-encoded
};

// Parses origin form ("/a?b"), absolute form ("http://host/a?b") and "*". Rejects empty segments, dot
// segments (encoded or not), backslashes, control characters and invalid escapes, so that all programs read
// the path in the same way. An encoded slash counts as a slash, because clients encode slashes in model
// names.
Result<Target> parse_target(std::string_view target);

// Decodes %XX and, if plus_is_space, '+' as a space. Returns nullopt for an invalid escape.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

// Encodes a decoded path for a request line.
std::string percent_encoded(std::string_view path);

// Returns the decoded value of the first `name=` in an encoded query, or nullopt.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace octavo::http
