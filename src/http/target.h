#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::http {

struct Target {
  std::string path;     // percent-decoded once
  std::string encoded;  // as sent
  std::string query;    // percent-encoded
};

// Parses "/a?b", "http://host/a?b" and "*". Rejects everything that programs interpret differently: empty
// segments, dot segments (also encoded), backslashes, control characters and invalid escapes. An encoded
// slash counts as a slash, because clients encode the slashes of model names.
Result<Target> parse_target(std::string_view target);

// Decodes %XX, and '+' as a space if plus_is_space. Returns nullopt for an invalid escape.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

// Encodes a decoded path for the request line.
std::string percent_encoded(std::string_view path);

// Returns the decoded value of the first parameter `name`, or nullopt.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace octavo::http
