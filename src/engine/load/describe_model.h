// Describes the engine's model to clients.
#pragma once

#include "model/spec.h"
#include "request/engine_info.h"

namespace octavo {

// Fills in the head of a model that returns vectors or scores.
void describe_head(const ModelSpec& spec, EngineInfo& info);

// Fills in the encoder of images, sound or prompts.
void describe_media(const ModelSpec& spec, int max_num_seqs, int max_model_len, EngineInfo& info);

}  // namespace octavo
