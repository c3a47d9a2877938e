// Reads the body of /v1/chat/completions.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/media_io.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

inline constexpr std::size_t kMessagesMax = 4096;
inline constexpr std::size_t kToolsMax = 1024;

enum class MediaKind : std::uint8_t { image, video, sound };
// Returns the kind of a content part with this type: "image", "video" or "audio".
MediaKind media_kind(std::string_view type);

struct ChatPrompt {
  struct Media {
    std::string field;  // name for errors, such as "messages[0].content[1].image_url"
    std::string url;    // "": the data is stored under `uuid`
    MediaKind kind = MediaKind::image;
    std::optional<std::string> bytes = {};
    std::string uuid = {};  // name under which the server stores the data (media_store.h); "": none
  };
  std::vector<Media> media{};

  std::string messages;
  // true: all contents are strings, and only the first message may be a system message; every template
  // accepts such messages
  bool plain = true;
  bool calls = false;  // whether messages have calls or results of tools
  // whether the answer may have calls that this server reads, so that a template without tools gets them as
  // text (serve/tool_texts.h)
  bool tools_as_text = false;
  std::string tools;
  std::string documents;
  std::string kwargs;
  // mm_processor_kwargs: settings for images and videos (image_overrides.h)
  boost::json::object processor{};
  MediaIo media_io{};                  // media_io_kwargs
  std::vector<std::string> ignored{};  // names of options of media_io_kwargs that have no effect
  std::string chat_template{};  // template of the request; "": the server's template
  bool add_generation_prompt = true;
  // the answer continues the last message; must not be set together with add_generation_prompt
  bool continue_final_message = false;
  bool omitted_images = false;
  std::string echo{};  // content of the last message, if the reply must repeat it at the beginning of the
                       // answer
};

// For models without image input: replaces images in tool results and in earlier turns by kOmittedImage. An
// agent sends such images again in each request, so an error would end its session. Images in the user's new
// message stay, and cause an error later. names: a name for each image, in order; names of replaced images
// are removed. Returns the number of replaced images.
int omit_images(const RequestRules& rules, boost::json::array& messages, std::vector<std::string>& names);
// Returns an error with field `name` if the prompt may not contain one more image, video or audio. before:
// number of media of this kind so far.
Result<> check_media(const std::string& name, const RequestRules& rules, std::ptrdiff_t before, MediaKind kind);

struct ChatRequest {
  GenerationRequest generation;
  ChatPrompt prompt;
};

Result<ChatRequest> parse_chat_request(const boost::json::object& body, const RequestRules& rules);

inline constexpr std::string_view kOmittedImage = "[image omitted: this model reads text only]";
// Entry of GenerationRequest::unknown_fields if images were replaced.
inline constexpr std::string_view kOmittedImagesField = "messages.content.image_url of earlier messages";

// Reads the field `content` of a message, and appends its images, videos and audio to `media`. Returns a
// string, null or a list of parts: {"type": "text", "text": ..}, {"type": "image"}, {"type": "video"} or
// {"type": "audio"}.
Result<boost::json::value> read_content_parts(Fields& message, const RequestRules& rules,
                                              std::vector<ChatPrompt::Media>& media);

// Reads messages, mm_processor_kwargs, tools, documents, chat_template, chat_template_kwargs,
// add_generation_prompt (the last argument is its default) and continue_final_message. Also used by
// /tokenize and the pooling routes.
Result<ChatPrompt> read_chat_prompt(Fields& fields, const RequestRules& rules,
                                    bool add_generation_prompt = true);

}  // namespace octavo::openai
