// A conversation as a chat template takes it. Templates differ in the roles, the places of system messages and
// the contents that they print; what one does not print would vanish, or end in its error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "serve/openai/chat_request.h"
#include "text/chat_template.h"

namespace octavo {

// How contents that are lists of parts go into a template: as they are, where the template goes through parts,
// else as one string; or always one of these.
enum class ContentFormat : std::uint8_t { automatic, string, parts };

struct ContentRules {
  ContentFormat format{};
  bool media = false;  // the model takes images, videos or sound
  // The text that marks media of a kind; null: no text.
  std::function<std::string_view(openai::MediaKind)> token{};
};

// The prompt's messages as JSON, as vLLM hands them to a template.
// - `developer` is `system` where the template does not have that role;
// - system messages are one, the first message, where the template prints no others;
// - a content of several parts is one string with a line for each, where the template does not go through
//   parts; lines like "<image>" come before the text. Models that take media get all contents as parts,
//   if their template goes through parts.
std::string messages_for_template(const ChatTemplate& chat_template, const openai::ChatPrompt& prompt,
                                  const ContentRules& rules);

}  // namespace octavo
