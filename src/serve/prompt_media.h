// Images, videos and sound in chats: converts data URLs to pixels and spectrograms, and finds their positions
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

// The token of a kind of media in texts; "": the model does not take the kind.
std::string_view token_of(const Service& service, openai::MediaKind kind);

// Default adapter of a chat with these media, if it names none: that of images, else of videos, else of
// sounds; "": none.
std::string adapter_of(const Service& service, std::span<const openai::ChatPrompt::Media> media);

// Decodes images, videos and sounds, and replaces the token of each in `text` by its text. place_media()
// finds the positions later. Errors name the field:
// - one of mm_processor_kwargs (image_overrides.h)
// - an address that is no data URL, or broken base64
// - media that are broken, too large or too long (media/video_file.h)
// - tokens of media in the text that differ from the media in number or order
// - more tokens than the context has
Result<std::vector<MediaPart>> read_media(const Service& service, const openai::ChatPrompt& prompt,
                                          std::string& text);

// Sets the positions of the parts in the prompt.
Result<> place_media(const Service& service, std::span<const TokenId> ids, std::vector<MediaPart>& parts);

}  // namespace octavo
