// Checks whether a model can take prompts as embeddings.
#pragma once

#include "engine/engine_options.h"
#include "model/model.h"

namespace octavo {

// Returns an error for "enable_prompt_embeds", with the property of the model that excludes it.
Result<> check_prompt_embeds(const EngineOptions& options, const Model& model);

}  // namespace octavo
