// Reads prompts that are embeddings: a safetensors file in base64, with one tensor [tokens, hidden_size].
#pragma once

#include <string_view>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

// Returns an error with field "prompt_embeds" if the server does not accept embeddings, if the file is not a
// safetensors file, or if the tensor has the wrong hidden_size or too many tokens. Never reads Python's
// pickle format.
Result<MediaPart> read_prompt_embeds(std::string_view base64, const RequestRules& rules);

}  // namespace octavo::openai
