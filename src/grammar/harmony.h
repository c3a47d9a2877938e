// Grammars of gpt-oss' answers, which are messages in channels (serve/openai/harmony.h). Only the last
// message is constrained.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

// Formats for structural tags, as JSON: a final message whose content has `format`, and a call.
std::string harmony_final(std::string_view format);
std::string harmony_call(std::string_view function, std::string_view schema);
// Returns the structural tag of answers that end with one of these messages. preambles: text for the user
// may precede it, in addition to reasoning.
std::string harmony_tag(std::span<const std::string> last_messages, bool preambles);

// Returns the grammar of answers whose final message follows `source`. Errors: a structural tag of the
// legacy form.
Result<GrammarSource> in_final_message(GrammarSource source);

}  // namespace octavo::grammar
