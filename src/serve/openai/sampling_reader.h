// The fields of request/sampling_fields.h in JSON: read from requests and from a model's
// generation_config.json, and described in the OpenAPI document.
#pragma once

#include <boost/json/object.hpp>
#include <optional>

#include "base/error.h"
#include "openai/request_fields.h"
#include "request/sampling_fields.h"

namespace octavo::openai {

// Defaults of missing fields.
struct GenerationDefaults {
  boost::json::object sampling;   // by the fields' names
  std::optional<int> max_tokens;  // also the most that a request can ask for
};

// Reads the defaults from a generation_config.json. Errors: invalid_argument with the field.
Result<GenerationDefaults> generation_defaults(const boost::json::object& config);

// Whether generation_config.json sets a default by this name.
bool is_generation_default(std::string_view name);

// Reads the fields of SamplingField::Part::draws; missing ones come from `defaults`. `temperature`: the
// endpoint's default instead of the model's.
Result<> read_draws(Fields& fields, const GenerationDefaults& defaults, SamplingParams& out,
                    std::optional<double> temperature = std::nullopt);

// Reads all other fields.
Result<> read_other_sampling(Fields& fields, SamplingParams& out);

// A field's JSON Schema.
boost::json::object sampling_schema(const SamplingField& field);

}  // namespace octavo::openai
