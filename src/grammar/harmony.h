// Grammars for gpt-oss outputs, which consist of messages in channels (serve/openai/harmony.h). Only the
// last message is constrained.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

// Both functions return the "format" of a structural tag as JSON. harmony_final(): a final message whose
// content has the given format. harmony_call(): a tool call.
std::string harmony_final(std::string_view format);
std::string harmony_call(std::string_view function, std::string_view schema);
// Returns a structural tag for outputs whose last message is one of these. preambles: messages to the user
// may precede the last message; otherwise only reasoning may precede it.
std::string harmony_tag(std::span<const std::string> last_messages, bool preambles);

// Returns the grammar of outputs whose final message matches `source`. Returns an error for a structural
// tag in the legacy form.
Result<GrammarSource> in_final_message(GrammarSource source);

}  // namespace octavo::grammar
