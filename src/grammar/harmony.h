// Grammars for gpt-oss outputs, which consist of messages in channels (serve/openai/harmony.h). Only the
// last message is constrained.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

// Both functions return a structural tag format as JSON: a final message with content of `format`, or a
// tool call.
std::string harmony_final(std::string_view format);
std::string harmony_call(std::string_view function, std::string_view schema);
// Returns a structural tag for outputs that end with one of these messages. preambles: messages to the user
// may precede it, not only reasoning.
std::string harmony_tag(std::span<const std::string> last_messages, bool preambles);

// Returns the grammar of outputs whose final message matches `source`. Returns an error for a structural
// tag in the legacy form.
Result<GrammarSource> in_final_message(GrammarSource source);

}  // namespace octavo::grammar
