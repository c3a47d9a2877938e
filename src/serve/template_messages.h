// Converts a conversation to the messages that a chat template accepts. Templates differ in the roles, the
// positions of system messages and the forms of content that they support. Content that a template does not
// print would be lost or would make the template fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "serve/openai/chat_request.h"
#include "text/chat_template.h"

namespace octavo {

// The form of message contents. automatic: a list of parts if the template reads parts, otherwise a string.
enum class ContentFormat : std::uint8_t { automatic, string, parts };

struct ContentRules {
  ContentFormat format{};
  bool media = false;
  // true: messages contain tools and calls as text if the template does not print them (tool_texts.h)
  bool write_tools = false;
  // Returns the placeholder text of a kind of media. Null: media have no placeholders.
  std::function<std::string_view(openai::MediaKind)> token{};
};

// Returns the prompt's messages as JSON, converted as in vLLM.
// - The role `developer` becomes `system` if the template does not know `developer`.
// - All system messages are joined into the first message if the template prints only that message.
// - A list of parts becomes one string, with one line per part, if the template does not read parts.
//   Placeholders such as "<image>" precede the text.
// - All contents become lists of parts if the model supports media and the template reads parts.
// - Tools, calls and results become text if the template does not print them, and `rules` say so.
Result<std::string> messages_for_template(const ChatTemplate& chat_template, const openai::ChatPrompt& prompt,
                                          const ContentRules& rules);

// `text` is the rendered input. Returns an error if the template prints nothing for messages whose role is
// not one of the usual roles, because their text would be lost.
Result<> check_roles(const ChatTemplate& chat_template, ChatInput input, std::string_view text);

}  // namespace octavo
