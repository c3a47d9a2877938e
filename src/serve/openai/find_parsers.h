// Finds how a model writes tool calls and thoughts: its chat template shows both to the model.
#pragma once

#include <string_view>

#include "text/tokenizer.h"

namespace octavo::openai {

struct FoundParser {
  std::string_view name{};  // "": none
  std::string_view mark{};  // the text that tells it
};

// A tool dialect, by text of the chat template; gpt-oss by its tokens.
FoundParser find_tool_parser(std::string_view chat_template, const Tokenizer& tokenizer);

// A reasoning parser whose marks are in the chat template, and in the vocabulary where it reads tokens.
// Dialects of calls tell models apart that have the same marks around thoughts.
FoundParser find_reasoning_parser(std::string_view chat_template, const Tokenizer& tokenizer,
                                  std::string_view tool_parser);

}  // namespace octavo::openai
