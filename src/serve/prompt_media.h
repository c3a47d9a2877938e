// Images, videos and audio in chats: converts data URLs to pixels and spectrograms, and finds their positions
// in the prompt.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/chat_request.h"
#include "serve/service.h"

namespace octavo {

// The text that marks media of a kind in a prompt; "": the model does not support the kind.
std::string_view token_of(const Service& service, openai::MediaKind kind);

// Default adapter of a chat with these media: that for images, else for videos, else for audio. "": none.
// Used if the request names no adapter.
std::string adapter_of(const Service& service, std::span<const openai::ChatPrompt::Media> media);

// Decodes images, videos and audio. In `text`, replaces the token of each of them by its placeholder tokens;
// place_media() finds their positions later. Errors name the field:
// - one of mm_processor_kwargs (image_overrides.h).
// - a URL that is not a data URL, or invalid base64.
// - media that are invalid, too large or too long (media/video_file.h).
// - media tokens in the text that do not match the media in number or order.
// - more tokens than fit the context.
Result<std::vector<MediaPart>> read_media(const Service& service, const openai::ChatPrompt& prompt,
                                          std::string& text);

Result<> place_media(const Service& service, std::span<const TokenId> ids, std::vector<MediaPart>& parts);

}  // namespace octavo
