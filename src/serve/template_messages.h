// A conversation in the form that a chat template accepts. Templates differ in their roles, in where they
// allow system messages, and in the contents that they print. Content that a template does not print would be
// lost, or cause its error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "serve/openai/chat_request.h"
#include "text/chat_template.h"

namespace octavo {

// Form of a content that is a list of parts. automatic: parts if the template reads parts, otherwise one
// string.
enum class ContentFormat : std::uint8_t { automatic, string, parts };

struct ContentRules {
  ContentFormat format{};
  bool media = false;  // the model takes images, videos or sound
  // The text that marks media of a kind. Null means no text.
  std::function<std::string_view(openai::MediaKind)> token{};
};

// The prompt's messages as JSON, as vLLM passes them to a template:
// - `developer` becomes `system` if the template lacks that role.
// - System messages are joined into the first message if the template prints only that one.
// - A content of several parts becomes one string, a line for each part, if the template does not read parts.
// Lines such as "<image>" precede the text. For models with media all contents are parts, if their template
// reads parts.
std::string messages_for_template(const ChatTemplate& chat_template, const openai::ChatPrompt& prompt,
                                  const ContentRules& rules);

}  // namespace octavo
