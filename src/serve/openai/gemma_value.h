// Reads the values in Gemma's tool calls and writes them as JSON. A value is a string between two `quote`s
// (ToolDialect::quote), a list [..], an object {name:value}, or bare text.
#pragma once

#include <string>
#include <string_view>

#include "serve/openai/call_cursor.h"

namespace octavo::openai {

struct GemmaValue {
  std::string json{};
  std::string bare{};  // text of a bare value
  bool is_bare = false;
};

bool read_gemma(CallCursor& cursor, std::string_view quote, GemmaValue& value);
// Reads the name of a member and the ':' after the name.
bool read_gemma_name(CallCursor& cursor, std::string_view quote, std::string& name);

}  // namespace octavo::openai
