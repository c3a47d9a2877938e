// Structured output of a request: response_format, structured_outputs. (Tools:
// tool_choice.h)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_source.h"
#include "openai/request_fields.h"

namespace octavo::openai {

// OpenAI's response_format ("text", "json_object", "json_schema") with vLLM's "structural_tag", or vLLM's
// structured_outputs, and not both. nullopt: the answer is free. `json`: the server's
// defaults of JSON. unknown: gets the names of unknown members of response_format.
Result<std::optional<grammar::GrammarSource>> read_structured_output(Fields& fields,
                                                                     const grammar::JsonOptions& json,
                                                                     std::vector<std::string>& unknown);

// Whether the field constrains answers, here or in another server: it must not be ignored.
bool is_constraint(std::string_view field);

}  // namespace octavo::openai
