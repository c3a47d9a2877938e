// Checks whether prompts of a model can be embeddings.
#pragma once

#include "engine/engine_options.h"
#include "model/model.h"

namespace octavo {

// Returns an error on "enable_prompt_embeds" that says why the model does not support prompt embeddings.
Result<> check_prompt_embeds(const EngineOptions& options, const Model& model);

}  // namespace octavo
