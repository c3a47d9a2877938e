// The supported architectures, each with a function from config.json to ModelSpec. A family's source file
// ends with its rows, in <file>_families(); table.cc lists the files.
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

// Ascending by architecture.
std::span<const Family> families();

// Values that transformers assumes for fields that a config.json of this architecture lacks (defaults.json).
const boost::json::object& field_defaults(std::string_view architecture);

// Describes the network of config.architectures[0]. Errors: invalid_argument, with the field; unsupported,
// with a list of the supported architectures.
Result<ModelSpec> describe(const Config& config);

}  // namespace octavo
