// YAML text as JSON values: what reads a configuration then needs to know one kind of value only.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Scalars that are not quoted may be numbers, truth values (as YAML 1.1 writes them) or null. `what` is the
// field of errors: not YAML, nested deeper than 32 levels.
Result<boost::json::value> parse_yaml(const std::string& text, std::string_view what);

// The same from a file of at most 1 MiB.
Result<boost::json::value> read_yaml_file(const std::string& path, std::string_view what);

}  // namespace octavo
