// Images, videos and sound in chats: from data URLs to pixels and spectrograms, and their places in the prompt.
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

// What stands in texts for what the model takes of a kind; "": it takes none.
std::string_view token_of(const Service& service, openai::MediaKind kind);

// The adapter of a chat with these that names none: of images before that of videos, and that before that of sounds;
// "": none is for them.
std::string adapter_of(const Service& service, std::span<const openai::ChatPrompt::Media> media);

// Decodes images, videos and sounds, and puts the text that stands for each in place of its token in `text`. The
// places of the parts are still open. Errors name the field: one of
// mm_processor_kwargs (image_overrides.h), an address that is no data URL, broken base64, a
// broken or too large image, a sound that is broken or longer than the model hears; more or fewer such tokens
// in the text than media, or in another order; a video that is broken, too long or too large (media/video_file.h); more tokens than the context has.
Result<std::vector<MediaPart>> read_media(const Service& service, const openai::ChatPrompt& prompt,
                                          std::string& text);

// Finds the places of the parts in the prompt.
Result<> place_media(const Service& service, std::span<const TokenId> ids, std::vector<MediaPart>& parts);

}  // namespace octavo
