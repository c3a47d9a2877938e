// A request's tools: which ones an answer must or may call, and the form of calls in replies.
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

// The tool that an answer must call; function "": any tool.
struct ForcedTool {
  std::string function;
};

// At most one of forced and dialect is set. Neither: answers are plain text.
struct ToolUse {
  std::optional<ForcedTool> forced;               // answers are calls of it
  const grammar::ToolDialect* dialect = nullptr;  // answers may hold calls, written like this
  std::shared_ptr<const KnownTools> tools;        // with dialect
  bool parallel = true;                           // several calls in one answer
  bool bound = false;                             // the grammar of answers has their calls in it
  bool known_only = false;                        // calls of other tools are text (`allowed_tools`)
};

// Reads tools, tool_choice and parallel_tool_calls. dialect: the server's, null without
// --enable-auto-tool-choice. special_tokens: those of the model's vocabulary.
//
// A forced call has vLLM's form: the arguments of the named function, or a list of {"name", "parameters"}
// with at least one entry (exactly one unless parallel). With `auto`, only strict tools and `output`
// constrain an answer. `output` is the request's other constraint: if it is JSON of a schema, the answer is
// either that JSON or calls.
struct ToolRequest {
  ToolUse use;
  std::optional<grammar::GrammarSource> output;  // what that asks of the answers, with the request's own
};
Result<ToolRequest> read_tool_use(Fields& fields, const grammar::ToolDialect* dialect,
                                  std::span<const std::string> special_tokens,
                                  std::optional<grammar::GrammarSource> output);

// The dialect for a parser's name and this tokenizer. Error: unknown parser.
Result<const grammar::ToolDialect*> tool_dialect_of(std::string_view parser, const Tokenizer& tokenizer);
// The special tokens of the dialect.
std::vector<std::int32_t> tool_tokens(const grammar::ToolDialect& dialect, const Tokenizer& tokenizer);
// Texts of all special tokens.
std::vector<std::string> special_tokens(const Tokenizer& tokenizer);

// Whether tool_choice is "none".
bool tools_unused(Fields& fields);

// The complete calls in the list of `required`, and the text that is not part of a call or of the list. The
// list may break off.
struct ForcedCalls {
  std::vector<std::pair<std::string, std::string>> calls;
  std::string_view rest;
};
ForcedCalls forced_calls(std::string_view text);
// An entry of a message's tool_calls. id: "" for later pieces of a call.
boost::json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments);
// dialect: dialect of the call, or null.
std::string new_tool_call_id(const grammar::ToolDialect* dialect = nullptr);

}  // namespace octavo::openai
