// Converts YAML to JSON values, so that configuration files in both formats have one reader.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Unquoted scalars may be numbers, booleans (as in YAML 1.1) or null. what: name that errors report in
// Error::field. Returns an error for invalid YAML, or for more than 32 nested levels.
Result<boost::json::value> parse_yaml(const std::string& text, std::string_view what);

// The file may have at most 1 MiB.
Result<boost::json::value> read_yaml_file(const std::string& path, std::string_view what);

}  // namespace octavo
