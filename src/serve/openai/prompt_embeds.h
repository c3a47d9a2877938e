// Prompts as embeddings: a safetensors file in base64, with one tensor of the prompt's rows.
#pragma once

#include <string_view>

#include "base/error.h"
#include "request/media_part.h"
#include "serve/openai/generation_fields.h"

namespace octavo::openai {

// Errors name "prompt_embeds": the server does not accept them, or the file is invalid, too long, of another
// size, or not safetensors. Never reads Python's pickle format.
Result<MediaPart> read_prompt_embeds(std::string_view base64, const RequestRules& rules);

}  // namespace octavo::openai
