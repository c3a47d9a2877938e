// Reads adapter_config.json of a LoRA adapter, as PEFT writes it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octavo {

struct AdapterConfig {
  // A value that may differ between modules. A pattern is the full name of a module, or the end of the name
  // after a dot. The first pattern that matches applies; without a match, the module has `usual`.
  template <class T>
  struct ByModule {
    T usual = {};
    std::vector<std::pair<std::string, T>> patterns = {};

    T of(std::string_view module) const;
  };

  ByModule<int> rank;
  ByModule<double> alpha;  // lora_alpha, alpha_pattern
  bool by_root = false;    // use_rslora
  bool tied = false;       // ensure_weight_tying: a change of the embedding also changes the output matrix

  // Factor of B A: lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora.
  float scale_of(std::string_view module) const;
  int rank_max() const;
};

// Reads <directory>/adapter_config.json. Errors: not_found if the file is missing; invalid_argument or
// unsupported (the message names the field).
Result<AdapterConfig> load_adapter_config(const std::string& directory);

}  // namespace octavo
