// What an answer must look like, as a request says it: response_format, structured_outputs, tool_choice.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar_cache.h"
#include "serve/openai/request_fields.h"

namespace octavo::openai {

struct StructuredOutput {
  grammar::GrammarSource source;
  std::string field;  // of the request, for errors
};

// OpenAI's response_format ("text", "json_object", "json_schema") with vLLM's "structural_tag", or vLLM's
// structured_outputs; the former wins, as in vLLM. Nothing: the answer is free.
Result<std::optional<StructuredOutput>> read_structured_output(Fields& fields);

// Which tool an answer must call. function: the only one, "" for any of them.
struct ForcedTool {
  std::string function;
};

// tool_choice, given the request's tools. "none" and "auto" force nothing.
Result<std::optional<ForcedTool>> read_tool_choice(Fields& fields, const boost::json::array* tools);

// The grammar of a forced call, as vLLM has it: the arguments of the named function, or a list of
// {"name", "parameters"} with at least one entry (exactly one unless `parallel`).
Result<StructuredOutput> tool_call_output(const boost::json::array& tools, const ForcedTool& forced,
                                          bool parallel);

// The tool_calls of a message, from the text of a forced call; empty when the text broke off before its end.
boost::json::array tool_calls_of(const std::string& text, const ForcedTool& forced);
// One of them. id: "" for a piece of a call that was begun before.
boost::json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments);
std::string new_tool_call_id();

}  // namespace octavo::openai
