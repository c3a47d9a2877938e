// Finds the parsers for a model's tool calls and reasoning by their markers in the model's chat template.
#pragma once

#include <string_view>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo::openai {

struct FoundParser {
  std::string_view name{};  // "": no parser was found
  std::string_view mark{};  // the text by which the parser was found
};

// Finds the tool dialect by a text in the chat template, or for gpt-oss by the tokens of the vocabulary. If
// the compiled template reads no tools, the server writes them as text (serve/tool_texts.h), and the dialect
// is that of this text. `compiled` is null if the model has no chat template.
FoundParser find_tool_parser(std::string_view chat_template, const Tokenizer& tokenizer,
                             const ChatTemplate* compiled);

// Finds the reasoning parser whose markers are in the chat template. If the parser's markers are single
// tokens, they must also be in the vocabulary. If several parsers have the same markers, `tool_parser` (the
// name of the tool parser) decides.
FoundParser find_reasoning_parser(std::string_view chat_template, const Tokenizer& tokenizer,
                                  std::string_view tool_parser);

}  // namespace octavo::openai
