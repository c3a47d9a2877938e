// One image, sound or video of a chat, from what the client sent to what the engine takes.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/chat_request.h"
#include "serve/service.h"

namespace octavo {

// Its parts, whose places are open, and the text that stands for them.
struct ReadMedia {
  std::string text;
  std::vector<MediaPart> parts;
};

// What follows "data:[type];base64,", or what has been fetched.
Result<std::string> bytes_of(const openai::ChatPrompt::Media& media);

// Of what the part shows: parts of other shapes are others, though they may have the same bytes.
Hash128 digest_of(const MediaPart& part);

// It stands for more tokens than the context has left.
Error no_room(std::string_view what, std::int64_t tokens, const Service& service);

// A file, or frames as data:video/jpeg;base64,<first>,<second>,.. of one size. Errors as read_media() has them, without
// a field.
Result<ReadMedia> read_video(const Service& service, const media::ProcessorConfig& config,
                             const openai::ChatPrompt::Media& given, std::int64_t tokens_max);

}  // namespace octavo
