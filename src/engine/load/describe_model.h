// Fills in EngineInfo, the properties of a model that clients can read.
#pragma once

#include "model/spec.h"
#include "request/engine_info.h"

namespace octavo {

void describe_head(const ModelSpec& spec, EngineInfo& info);

void describe_media(const ModelSpec& spec, int max_num_seqs, int max_model_len, EngineInfo& info);

}  // namespace octavo
