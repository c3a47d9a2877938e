// Reads the fields of request/sampling_fields.h from requests and from a model's generation_config.json.
// Also describes these fields for the OpenAPI document.
#pragma once

#include <boost/json/object.hpp>
#include <optional>

#include "base/error.h"
#include "openai/request_fields.h"
#include "request/sampling_fields.h"

namespace octavo::openai {

// Values of fields that a request does not set.
struct GenerationDefaults {
  boost::json::object sampling;   // the keys are names of sampling fields
  std::optional<int> max_tokens;  // default and upper limit of the output tokens
};

// Reads the defaults from a generation_config.json. Returns invalid_argument with the field's name if a
// value is invalid.
Result<GenerationDefaults> generation_defaults(const boost::json::object& config);

// Returns whether generation_config.json can set a default for this field.
bool is_generation_default(std::string_view name);

// Reads the fields of SamplingField::Part::draws. Missing fields get values from `defaults`. temperature: the
// route's default, which overrides that in `defaults`.
Result<> read_draws(Fields& fields, const GenerationDefaults& defaults, SamplingParams& out,
                    std::optional<double> temperature = std::nullopt);

Result<> read_other_sampling(Fields& fields, SamplingParams& out);

boost::json::object sampling_schema(const SamplingField& field);

}  // namespace octavo::openai
