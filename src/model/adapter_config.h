// adapter_config.json of a LoRA adapter, as PEFT writes it.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

struct AdapterConfig {
  int rank = 0;     // r
  float scale = 1;  // of B A: lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora
  bool tied = false;  // ensure_weight_tying: what changes the embedding changes the output matrix, too
};

// Reads <directory>/adapter_config.json. Errors: not_found; a field that is wrong, or asks for something that
// is not supported.
Result<AdapterConfig> load_adapter_config(const std::string& directory);

}  // namespace octavo
