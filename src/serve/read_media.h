// Converts one image, audio or video of a chat from the client's bytes to the engine's parts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/chat_request.h"
#include "serve/service.h"

namespace octavo {

// Parts without positions, and the text that marks them in the prompt.
struct ReadMedia {
  std::string text;
  std::vector<MediaPart> parts;
};

// The bytes of "data:[type];base64,..", or of the fetched file.
Result<std::string> bytes_of(const openai::ChatPrompt::Media& media);

// Digest of the bytes and the dimensions.
Hash128 digest_of(const MediaPart& part);

// The error for media that need more tokens than the context has left.
Error no_room(std::string_view what, std::int64_t tokens, const Service& service);

// Reads a video file, or frames of one size as data:video/jpeg;base64,<first>,<second>,.. Errors: as for
// read_media(), without a field.
Result<ReadMedia> read_video(const Service& service, const media::ProcessorConfig& config,
                             const openai::ChatPrompt::Media& given, std::int64_t tokens_max);

}  // namespace octavo
