// The supported architectures. Each has a function that converts config.json to a ModelSpec. A family's
// source file ends with its rows, in <file>_families(); table.cc lists the files.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "model/spec.h"

namespace octavo {

struct Family {
  std::string_view architecture;  // a value of "architectures" in config.json
  Result<ModelSpec> (*describe)(const Config&);
};

// Returns all families, in ascending order of architecture.
std::span<const Family> families();

// Returns the values that transformers assumes for fields that a config.json of this architecture lacks
// (defaults.json).
const boost::json::object& field_defaults(std::string_view architecture);

// Describes the network of config.architectures[0]. Returns invalid_argument with the name of the field, or
// unsupported with a list of the supported architectures.
Result<ModelSpec> describe(const Config& config);

}  // namespace octavo
