// What an answer must look like, as a request says it: response_format, structured_outputs. (Tools:
// tool_choice.h)
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_cache.h"
#include "grammar/tool_calls.h"
#include "serve/openai/request_fields.h"

namespace octavo::openai {

// Free text in which the calls of strict tools have valid arguments. How that is said as a grammar depends on
// the vocabulary.
struct StrictCalls {
  std::vector<grammar::Tool> tools;
  const grammar::ToolDialect* dialect = nullptr;
  bool parallel = true;
};

struct StructuredOutput {
  grammar::GrammarSource source;
  std::string field;                        // of the request, for errors
  std::optional<StrictCalls> strict_calls;  // given: instead of the source
};

// OpenAI's response_format ("text", "json_object", "json_schema") with vLLM's "structural_tag", or vLLM's
// structured_outputs; the former wins, as in vLLM. Nothing: the answer is free.
Result<std::optional<StructuredOutput>> read_structured_output(Fields& fields);

// JSON with numbers in their short form: a grammar spells constants as the schema does.
std::string json_text(const boost::json::value& value);

}  // namespace octavo::openai
