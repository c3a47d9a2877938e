// A strict reader for the JSON files of a checkpoint.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace octavo {

struct JsonLimits {
  std::size_t bytes = std::size_t{16} << 20;
  std::size_t depth = 32;
};

// Parses a JSON text. A repeated key is an error, because readers differ in which value they use. Errors:
// corrupt; their messages begin with `what`, the name of the file.
Result<boost::json::value> parse_json(std::string_view text, std::string_view what,
                                      const JsonLimits& limits = {});

Result<boost::json::value> read_json_file(const std::string& path, const JsonLimits& limits = {});

}  // namespace octavo
