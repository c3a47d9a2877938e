// What an answer must look like, as a request says it: response_format, structured_outputs. (Tools:
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
// structured_outputs, and not both. Nothing: the answer is free. `json`: how this server writes JSON where a
// request says nothing. unknown: gets the names of members of response_format that nobody reads.
Result<std::optional<grammar::GrammarSource>> read_structured_output(Fields& fields,
                                                                     const grammar::JsonOptions& json,
                                                                     std::vector<std::string>& unknown);

// Whether the field constrains answers, here or in another server: it must not be ignored.
bool is_constraint(std::string_view field);

}  // namespace octavo::openai
