// Reads response_format and structured_outputs, which constrain the output. See tool_choice.h for tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_source.h"
#include "openai/request_fields.h"

namespace octavo::openai {

// Reads OpenAI's response_format ("text", "json_object", "json_schema", or vLLM's "structural_tag") or vLLM's
// structured_outputs. Returns nullopt if the output is free text, and an error if the request has both
// fields. json: the server's defaults for JSON. Adds unknown members of response_format to `unknown`.
Result<std::optional<grammar::GrammarSource>> read_structured_output(Fields& fields,
                                                                     const grammar::JsonOptions& json,
                                                                     std::vector<std::string>& unknown);

// Returns whether a field with this name constrains answers, in Octavo or in other servers. Such a field must
// not be ignored.
bool is_constraint(std::string_view field);

}  // namespace octavo::openai
