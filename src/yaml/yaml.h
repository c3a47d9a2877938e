// Parses YAML into JSON values, so that readers of configurations need only one type.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Unquoted scalars may be numbers, booleans (as in YAML 1.1) or null. what: field of errors. Errors: invalid
// YAML, more than 32 levels.
Result<boost::json::value> parse_yaml(const std::string& text, std::string_view what);

// Parses a file of at most 1 MiB.
Result<boost::json::value> read_yaml_file(const std::string& path, std::string_view what);

}  // namespace octavo
