// Whether a model can take prompts as embeddings.
#pragma once

#include "engine/engine_options.h"
#include "model/model.h"

namespace octavo {

// Error: "enable_prompt_embeds", with the property of the model that rules it out.
Result<> check_prompt_embeds(const EngineOptions& options, const Model& model);

}  // namespace octavo
