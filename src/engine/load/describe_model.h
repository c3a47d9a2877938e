// What a client must know of the model that an engine has.
#pragma once

#include "model/spec.h"
#include "request/engine_info.h"

namespace octavo {

// Of the heads of a model that makes vectors or scores.
void describe_head(const ModelSpec& spec, EngineInfo& info);

// Of an encoder of images, sound or prompts.
void describe_media(const ModelSpec& spec, int max_num_seqs, int max_model_len, EngineInfo& info);

}  // namespace octavo
