// Finds the parsers for a model's tool calls and thoughts by its chat template, which shows both to the
// model.
#pragma once

#include <string_view>

#include "text/tokenizer.h"

namespace octavo::openai {

struct FoundParser {
  std::string_view name{};  // "": no parser was found
  std::string_view mark{};  // the text by which the parser was found
};

// Finds the tool dialect by a text of the chat template; for gpt-oss by its tokens.
FoundParser find_tool_parser(std::string_view chat_template, const Tokenizer& tokenizer);

// Finds the reasoning parser whose marks are in the chat template. For parsers that read tokens, the marks
// must also be in the vocabulary. If several models have the same marks, their dialects of tool calls decide.
FoundParser find_reasoning_parser(std::string_view chat_template, const Tokenizer& tokenizer,
                                  std::string_view tool_parser);

}  // namespace octavo::openai
