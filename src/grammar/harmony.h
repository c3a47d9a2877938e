// Grammars of gpt-oss' answers, which are messages in channels (serve/openai/harmony.h): thoughts are free,
// the last message is not.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "grammar/grammar_source.h"

namespace octavo::grammar {

// The formats (of structural tags, as JSON) of a final message with this format, and of a call.
std::string harmony_final(std::string_view format);
std::string harmony_call(std::string_view function, std::string_view schema);
// The structural tag of answers that end with one of these messages. preambles: text for the user may come
// before it, as thoughts may.
std::string harmony_tag(std::span<const std::string> last_messages, bool preambles);

// The grammar of answers whose final message is what `source` says. Errors: a structural tag of the legacy
// form.
Result<GrammarSource> in_final_message(GrammarSource source);

}  // namespace octavo::grammar
