// The body of /v1/chat/completions.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

inline constexpr std::size_t kMessagesMax = 4096;
inline constexpr std::size_t kToolsMax = 1024;

// The conversation: JSON texts. Content given as a list is one of {"type": "text", "text": ..}, {"type":
// "image"}, {"type": "video"} and {"type": "audio"}. A tool call's arguments are an object.
enum class MediaKind : std::uint8_t { image, video, sound };
// Kind of a part of this type in a template's conversation: "image", "video" or "audio".
MediaKind media_kind(std::string_view type);

struct ChatPrompt {
  // An image, a video or a sound of the conversation, in order.
  struct Media {
    std::string field;  // "messages[0].content[1].image_url"
    std::string url;
    MediaKind kind = MediaKind::image;
    std::optional<std::string> bytes = {};  // fetched from the address
  };
  std::vector<Media> media{};

  std::string messages;
  // Contents are strings and the system message is first: every template accepts that.
  bool plain = true;
  std::string tools;            // "" when there are none
  std::string documents;        // "" when there are none
  std::string kwargs;           // "" when there are none
  boost::json::object processor{};  // mm_processor_kwargs: how its images and videos are prepared (image_overrides.h)
  std::string chat_template{};  // the request's own; "": the server's
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // excludes add_generation_prompt
};

// Checks that a prompt with `before` images, videos or sounds may have one more. The error names `name`.
Result<> check_media(const std::string& name, const RequestRules& rules, std::ptrdiff_t before, MediaKind kind);

struct ChatRequest {
  GenerationRequest generation;
  ChatPrompt prompt;
};

Result<ChatRequest> parse_chat_request(const boost::json::object& body, const RequestRules& rules);

// Reads messages, mm_processor_kwargs, tools, documents, chat_template, chat_template_kwargs,
// add_generation_prompt (its default is the last argument) and continue_final_message. Also for /tokenize and
// the pooling routes.
Result<ChatPrompt> read_chat_prompt(Fields& fields, const RequestRules& rules,
                                    bool add_generation_prompt = true);

}  // namespace octavo::openai
