// Structured output of a request: response_format and structured_outputs. For tools see tool_choice.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_source.h"
#include "openai/request_fields.h"

namespace octavo::openai {

// Reads OpenAI's response_format ("text", "json_object", "json_schema"; also vLLM's "structural_tag") or
// vLLM's structured_outputs; a request with both is an error. nullopt: free text. json: the server's JSON
// defaults. unknown: gets the names of unknown members of response_format.
Result<std::optional<grammar::GrammarSource>> read_structured_output(Fields& fields,
                                                                     const grammar::JsonOptions& json,
                                                                     std::vector<std::string>& unknown);

// Whether this field constrains answers, in this server or in others. Such a field must not be ignored.
bool is_constraint(std::string_view field);

}  // namespace octavo::openai
