// A request's tools: which of them an answer must or may call, and calls as replies show them.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_source.h"
#include "openai/request_fields.h"
#include "serve/openai/tool_parser.h"
#include "text/tokenizer.h"

namespace octavo::openai {

// Which tool an answer must call. function: the only one, "" for any of them.
struct ForcedTool {
  std::string function;
};

// At most one of forced and dialect is given; neither: an answer is text.
struct ToolUse {
  std::optional<ForcedTool> forced;               // answers are calls of it
  const grammar::ToolDialect* dialect = nullptr;  // answers may hold calls, written like this
  std::shared_ptr<const KnownTools> tools;        // with dialect
  bool parallel = true;                           // several calls in one answer
  bool bound = false;                             // the grammar of answers has their calls in it
  bool known_only = false;                        // calls of other tools are text (`allowed_tools`)
};

// tools, tool_choice and parallel_tool_calls. dialect: the server's, null without --enable-auto-tool-choice.
// special_tokens: of the model's vocabulary.
//
// A forced call has the form that vLLM gives it: the arguments of the named function, or a list of {"name",
// "parameters"} with at least one entry (exactly one unless parallel). Under `auto` an answer is bound only
// by strict tools and by `output`, what the request asks of answers besides: JSON of a schema may then be calls
// in its place.
struct ToolRequest {
  ToolUse use;
  std::optional<grammar::GrammarSource> output;  // what that asks of the answers, with the request's own
};
Result<ToolRequest> read_tool_use(Fields& fields, const grammar::ToolDialect* dialect,
                                  std::span<const std::string> special_tokens,
                                  std::optional<grammar::GrammarSource> output);

// The dialect of a parser's name, as the tokenizer's model writes it. Errors: no such parser.
Result<const grammar::ToolDialect*> tool_dialect_of(std::string_view parser, const Tokenizer& tokenizer);
// The special tokens that it is written with.
std::vector<std::int32_t> tool_tokens(const grammar::ToolDialect& dialect, const Tokenizer& tokenizer);
// All special tokens, as they are written.
std::vector<std::string> special_tokens(const Tokenizer& tokenizer);

// Whether the request's tools are not to be called: tool_choice is "none".
bool tools_unused(Fields& fields);

// The calls of `required`'s list that are whole, by name and arguments, and what of the text is neither of
// them nor of the list: the list may have broken off.
struct ForcedCalls {
  std::vector<std::pair<std::string, std::string>> calls;
  std::string_view rest;
};
ForcedCalls forced_calls(std::string_view text);
// One of the tool_calls of a message. id: "" for a piece of a call that was begun before.
boost::json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments);
// dialect: whose calls they are; null: of none.
std::string new_tool_call_id(const grammar::ToolDialect* dialect = nullptr);

}  // namespace octavo::openai
