// The request target: which path and query a request line means.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::http {

struct Target {
  std::string path;     // percent-decoded once
  std::string encoded;  // the path as it was sent
  std::string query;    // still encoded
};

// Takes origin form ("/a?b"), absolute form ("http://host/a?b") and "*". A target with an empty segment, a
// dot segment (encoded or not), a backslash, a control character or a broken escape is refused rather than
// repaired, so that no two readers can disagree on what it means. An encoded slash is a slash: clients encode
// those in model names.
Result<Target> parse_target(std::string_view target);

// %XX -> byte, and with plus_is_space '+' -> ' '. nullopt: a broken escape.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

// A decoded path as it is written in a request line.
std::string percent_encoded(std::string_view path);

// The decoded value of the first `name=` in an encoded query.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace octavo::http
