// The body of /v1/chat/completions.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

inline constexpr std::size_t kMessagesMax = 4096;
inline constexpr std::size_t kToolsMax = 1024;

// The conversation as a chat template takes it: JSON texts. Content given as a list of text parts is one
// string (the parts joined by a line break); with images it is the list of {"type": "text", "text": ..} and
// {"type": "image"}. A tool call's arguments are an object.
struct ChatPrompt {
  // An image of the conversation, in order.
  struct ImageUrl {
    std::string field;  // "messages[0].content[1].image_url"
    std::string url;
  };
  std::vector<ImageUrl> images{};

  std::string messages;
  std::string tools;            // "" when there are none
  std::string documents;        // "" when there are none
  std::string kwargs;           // "" when there are none
  std::string chat_template{};  // the request's own; "": the server's
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // excludes add_generation_prompt
};

struct ChatRequest {
  GenerationRequest generation;
  ChatPrompt prompt;
};

Result<ChatRequest> parse_chat_request(const boost::json::object& body, const RequestRules& rules);

// messages, tools, documents, chat_template, chat_template_kwargs, add_generation_prompt,
// continue_final_message: also of /tokenize.
Result<ChatPrompt> read_chat_prompt(Fields& fields, const RequestRules& rules);

}  // namespace octavo::openai
