// What an answer must look like, as a request says it: response_format, structured_outputs. (Tools:
// tool_choice.h)
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "grammar/grammar_source.h"
#include "serve/openai/request_fields.h"

namespace octavo::openai {

// OpenAI's response_format ("text", "json_object", "json_schema") with vLLM's "structural_tag", or vLLM's
// structured_outputs; the former wins, as in vLLM. Nothing: the answer is free. `json`: how this server
// writes JSON where a request says nothing.
Result<std::optional<grammar::GrammarSource>> read_structured_output(Fields& fields,
                                                                     const grammar::JsonOptions& json);

}  // namespace octavo::openai
