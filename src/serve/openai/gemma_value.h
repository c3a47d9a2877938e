// Values of Gemma's calls, written as JSON: strings between two quotes of the dialect, [..], {name:value},
// and bare text.
#pragma once

#include <string>
#include <string_view>

#include "serve/openai/call_cursor.h"

namespace octavo::openai {

struct GemmaValue {
  std::string json{};
  std::string bare{};  // the text of a bare value
  bool is_bare = false;
};

// quote: the dialect's.
bool read_gemma(CallCursor& cursor, std::string_view quote, GemmaValue& value);
// The name of a member, up to its ':', which is read too.
bool read_gemma_name(CallCursor& cursor, std::string_view quote, std::string& name);

}  // namespace octavo::openai
