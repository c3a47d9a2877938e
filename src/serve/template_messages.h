// Converts a conversation to the form that a chat template accepts. Templates differ in their roles, in the
// positions of system messages, and in the forms of content that they print. Content that a template does not
// print would be lost, or would cause the template's error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "serve/openai/chat_request.h"
#include "text/chat_template.h"

namespace octavo {

// Form of message contents. automatic: a list of parts if the template reads parts, otherwise a string.
enum class ContentFormat : std::uint8_t { automatic, string, parts };

struct ContentRules {
  ContentFormat format{};
  bool media = false;  // the model supports images, videos or audio
  // The text that marks media of a kind. Null: no text.
  std::function<std::string_view(openai::MediaKind)> token{};
};

// The prompt's messages as JSON, converted like in vLLM:
// - The role `developer` becomes `system` if the template lacks that role.
// - System messages are joined into the first message if the template prints only that one.
// - A list of parts becomes one string with a line for each part if the template does not read parts. Lines
//   such as "<image>" precede the text.
// - If the model supports media and the template reads parts, all contents are lists of parts.
std::string messages_for_template(const ChatTemplate& chat_template, const openai::ChatPrompt& prompt,
                                  const ContentRules& rules);

}  // namespace octavo
