// Decodes one image, audio or video of a chat to MediaParts for the engine.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/chat_request.h"
#include "serve/service.h"

namespace octavo {

// MediaParts, whose positions are not set yet, and the text that represents them in the prompt.
struct ReadMedia {
  std::string text;
  std::vector<MediaPart> parts;
};

// Returns the bytes of "data:[type];base64,..", or of the fetched file.
Result<std::string> bytes_of(const openai::ChatPrompt::Media& media);

Hash128 digest_of(const MediaPart& part);

// Returns the error for media that need more tokens than the context has left.
Error no_room(std::string_view what, std::int64_t tokens, const Service& service);

// Decodes a video: a file, or frames of equal size in data:video/jpeg;base64,<first>,<second>,.. Returns the
// errors of read_media(), without a field.
Result<ReadMedia> read_video(const Service& service, const media::ProcessorConfig& config,
                             const openai::ChatPrompt::Media& given, std::int64_t tokens_max);

}  // namespace octavo
