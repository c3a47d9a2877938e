// Images, videos and audio in chats: decodes the media to pixels and spectrograms, and finds the positions
// of their tokens in the prompt.
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

// Returns the placeholder text for media of this kind in a prompt, or "" if the model does not support the
// kind.
std::string_view token_of(const Service& service, openai::MediaKind kind);

// Returns the default LoRA adapter for a chat with these media, for requests that name no adapter. If several
// apply, the order is: adapter for images, for videos, for audio. Returns "" if no default applies.
std::string adapter_of(const Service& service, std::span<const openai::ChatPrompt::Media> media);

// Decodes images, videos and audio. Replaces the placeholder of each medium in `text` by the medium's
// tokens; place_media() finds the positions of these tokens later. Returns an error with the field's name in
// these cases.
// - A field of mm_processor_kwargs is invalid (image_overrides.h).
// - A URL is not a data URL, or the base64 is invalid.
// - Media are invalid, too large or too long (media/video_file.h).
// - The number or order of the placeholders in the text does not match the media.
// - The media take more tokens than fit the context.
Result<std::vector<MediaPart>> read_media(const Service& service, const openai::ChatPrompt& prompt,
                                          std::string& text);

Result<> place_media(const Service& service, std::span<const TokenId> ids, std::vector<MediaPart>& parts);

}  // namespace octavo
