// A request's tools: the tools that an answer must or may call, and the format of calls in replies.
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
#include "base/hash.h"
#include "grammar/grammar_source.h"
#include "openai/request_fields.h"
#include "serve/openai/tool_parser.h"
#include "text/tokenizer.h"

namespace octavo::openai {

// The tool that an answer must call; function "": any tool.
struct ForcedTool {
  std::string function;
};

// At most one of `forced` and `dialect` is set. If neither is set, answers are plain text.
struct ToolUse {
  std::optional<ForcedTool> forced;               // answers are calls of this tool
  const grammar::ToolDialect* dialect = nullptr;  // answers may contain calls in this dialect
  std::shared_ptr<const KnownTools> tools;        // set if `dialect` is
  bool parallel = true;                           // an answer may contain several calls
  bool bound = false;                             // the grammar of answers includes calls
  bool known_only = false;                        // calls of unknown tools are text (`allowed_tools`)
};

// Reads tools, tool_choice and parallel_tool_calls. dialect: the server's; null without
// --enable-auto-tool-choice. special_tokens: texts of the vocabulary's special tokens.
//
// A forced call has the same form as in vLLM: the arguments of the named function, or a list of {"name",
// "parameters"} with at least one entry (exactly one unless parallel). With `auto`, only strict tools and
// `output` constrain an answer. `output` is the request's other constraint: if it is a JSON schema, the
// answer is either JSON of this schema or calls.
struct ToolRequest {
  ToolUse use;
  std::optional<grammar::GrammarSource> output;  // grammar of the answers, including the request's other
                                                 // constraint
};
Result<ToolRequest> read_tool_use(Fields& fields, const grammar::ToolDialect* dialect,
                                  std::span<const std::string> special_tokens,
                                  std::optional<grammar::GrammarSource> output);

// The dialect for a parser's name and the tokenizer. Error: unknown parser.
Result<const grammar::ToolDialect*> tool_dialect_of(std::string_view parser, const Tokenizer& tokenizer);
std::vector<std::int32_t> tool_tokens(const grammar::ToolDialect& dialect, const Tokenizer& tokenizer);
// Texts of all special tokens.
std::vector<std::string> special_tokens(const Tokenizer& tokenizer);

bool tools_unused(Fields& fields);

// Reads the list that tool_choice `required` produces: its complete calls, and the text outside of calls and
// list. The list may be incomplete.
struct ForcedCalls {
  std::vector<std::pair<std::string, std::string>> calls;
  std::string_view rest;
};
ForcedCalls forced_calls(std::string_view text);
// An entry of a message's tool_calls. id: "" for later pieces of a call.
boost::json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments);
// dialect: the call's dialect, or null. bits: random.
std::string tool_call_id(const grammar::ToolDialect* dialect, const Hash128& bits);

}  // namespace octavo::openai
