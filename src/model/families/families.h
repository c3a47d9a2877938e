// Families of models. A family has a function that converts config.json to a ModelSpec, and one row per
// architecture. table.cc collects the rows of all files.
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
  bool text_only = false;  // the model also reads images or sound, but Octavo gives it only text
};

// All families, ascending by architecture.
std::span<const Family> families();

// Values that transformers assumes for fields that a config.json of this architecture lacks (defaults.json).
const boost::json::object& field_defaults(std::string_view architecture);

// Describes the network of config.architectures[0]. Errors: invalid_argument (the message names the field),
// or unsupported (it lists the supported architectures).
Result<ModelSpec> describe(const Config& config);

}  // namespace octavo
