// The architectures that Octavo knows: config.json -> ModelSpec. A family's file ends with its rows, in a
// function <file>_families(); table.cc lists the files.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "model/spec.h"

namespace octavo {

struct Family {
  std::string_view architecture;  // as in config.json's "architectures"
  Result<ModelSpec> (*describe)(const Config&);
};

// Ascending by architecture.
std::span<const Family> families();

// The values that transformers assumes for fields that a config.json of this architecture leaves out
// (defaults.json).
const boost::json::object& field_defaults(std::string_view architecture);

// Finds the family by config.architectures[0] and describes the network. Errors: invalid_argument naming the
// field, unsupported listing what is supported.
Result<ModelSpec> describe(const Config& config);

}  // namespace octavo
