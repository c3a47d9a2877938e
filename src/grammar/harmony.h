// Grammars of gpt-oss' answers, which consist of messages in channels (serve/openai/harmony.h). Thoughts are
// not constrained, the last message is.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

// Formats for structural tags, as JSON: of a final message whose content has this format, and of a call.
std::string harmony_final(std::string_view format);
std::string harmony_call(std::string_view function, std::string_view schema);
// The structural tag of answers that end with one of these messages. preambles: text for the user may come
// before it, in addition to thoughts.
std::string harmony_tag(std::span<const std::string> last_messages, bool preambles);

// The grammar of answers whose final message follows `source`. Errors: a structural tag of the legacy form.
Result<GrammarSource> in_final_message(GrammarSource source);

}  // namespace octavo::grammar
