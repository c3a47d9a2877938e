// Reads a request's tools: which tools an answer must or may call, and in which form the model writes the
// calls.
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

// The function that an answer must call; "": the answer must call at least one tool.
struct ForcedTool {
  std::string function;
};

// At most one of `forced` and `dialect` is set. If neither is set, answers are plain text.
struct ToolUse {
  std::optional<ForcedTool> forced;               // answers consist of forced calls
  const grammar::ToolDialect* dialect = nullptr;  // answers may contain calls in this dialect
  std::shared_ptr<const KnownTools> tools;        // set if `dialect` is set
  bool parallel = true;
  bool bound = false;       // whether the grammar of the answers includes calls
  bool known_only = false;  // whether calls of unknown tools are text (`allowed_tools`)
};

// Reads tools, tool_choice and parallel_tool_calls. dialect: the server's dialect, or null without
// --enable-auto-tool-choice. special_tokens: texts of the vocabulary's special tokens.
//
// Forced calls have the same form as in vLLM. For a named function: only its arguments. For `required`: a
// list of at least one {"name", "parameters"}, or of exactly one if parallel_tool_calls is false. With
// `auto`, only strict tools and `output` constrain an answer. output: the constraint from response_format. If
// it is a JSON schema, the answer is either JSON of this schema or calls.
struct ToolRequest {
  ToolUse use;
  // grammar of the answers, which includes the constraint from response_format
  std::optional<grammar::GrammarSource> output;
};
Result<ToolRequest> read_tool_use(Fields& fields, const grammar::ToolDialect* dialect,
                                  std::span<const std::string> special_tokens,
                                  std::optional<grammar::GrammarSource> output);

// Returns the dialect for a parser's name and the tokenizer, or an error if the parser is unknown.
Result<const grammar::ToolDialect*> tool_dialect_of(std::string_view parser, const Tokenizer& tokenizer);
std::vector<std::int32_t> tool_tokens(const grammar::ToolDialect& dialect, const Tokenizer& tokenizer);
std::vector<std::string> special_tokens(const Tokenizer& tokenizer);

bool tools_unused(Fields& fields);
// Returns whether the answer may have calls in the form of the dialect `hermes`, or calls that are forced.
bool may_call(Fields& fields, const grammar::ToolDialect* dialect);

// Reads the list of calls that an answer with tool_choice `required` consists of. Returns the names and
// arguments of the complete calls. The list may be incomplete, because a limit or a stop string may end it.
std::vector<std::pair<std::string, std::string>> forced_calls(std::string_view text);
// Returns an entry of a message's tool_calls. id: "" for all pieces of a call except the first.
boost::json::object tool_call_json(std::string_view id, std::string_view name, std::string_view arguments);
// dialect: the call's dialect, or null. bits: random bits for the id.
std::string tool_call_id(const grammar::ToolDialect* dialect, const Hash128& bits);

}  // namespace octavo::openai
