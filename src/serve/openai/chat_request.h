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

// The conversation, as JSON texts. If a content is a list, its parts are {"type": "text", "text": ..},
// {"type": "image"}, {"type": "video"} or {"type": "audio"}. A tool call's arguments are an object.
enum class MediaKind : std::uint8_t { image, video, sound };
// Kind of a content part by its type: "image", "video" or "audio".
MediaKind media_kind(std::string_view type);

struct ChatPrompt {
  // An image, a video or audio of the conversation.
  struct Media {
    std::string field;  // "messages[0].content[1].image_url"
    std::string url;
    MediaKind kind = MediaKind::image;
    std::optional<std::string> bytes = {};  // bytes fetched from the URL
  };
  std::vector<Media> media{};

  std::string messages;
  // All contents are strings and the system message is first: every template accepts such a conversation.
  bool plain = true;
  std::string tools;                // "": none
  std::string documents;            // "": none
  std::string kwargs;               // "": none
  boost::json::object processor{};  // mm_processor_kwargs: settings for images and videos (image_overrides.h)
  std::string chat_template{};      // template of the request; "": the server's
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // must not be set together with add_generation_prompt
  bool omitted_images = false;          // omit_images() has replaced some
  std::string echo{};                   // content of the last message, if the answer repeats it
};

// Checks that a prompt may contain one more image, video or audio. before: number of media of this kind so
// far. Errors contain `name`.
// For models that read no images: replaces the images of tools and of earlier turns by kOmittedImage. An
// agent sends them again with each request, so an error would end its session. Images of the user's new
// message remain, and are an error. `names` has a name for each image in order; those of replaced images are
// removed. Returns the number of replaced images.
int omit_images(const RequestRules& rules, boost::json::array& messages, std::vector<std::string>& names);
Result<> check_media(const std::string& name, const RequestRules& rules, std::ptrdiff_t before, MediaKind kind);

struct ChatRequest {
  GenerationRequest generation;
  ChatPrompt prompt;
};

Result<ChatRequest> parse_chat_request(const boost::json::object& body, const RequestRules& rules);

inline constexpr std::string_view kOmittedImage = "[image omitted: this model reads text only]";
// Name of replaced images in GenerationRequest::unknown_fields.
inline constexpr std::string_view kOmittedImagesField = "messages.content.image_url of earlier messages";

// Reads messages, mm_processor_kwargs, tools, documents, chat_template, chat_template_kwargs,
// add_generation_prompt (its default is the last argument) and continue_final_message. /tokenize and the
// pooling routes call this function too.
Result<ChatPrompt> read_chat_prompt(Fields& fields, const RequestRules& rules,
                                    bool add_generation_prompt = true);

}  // namespace octavo::openai
