// adapter_config.json of a LoRA adapter, as PEFT writes it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octavo {

struct AdapterConfig {
  // Values by module. The first pattern that matches decides: a pattern is a module's name, or the end of
  // it after a dot.
  template <class T>
  struct ByModule {
    T usual = {};
    std::vector<std::pair<std::string, T>> patterns = {};

    T of(std::string_view module) const;
  };

  ByModule<int> rank;      // r, rank_pattern
  ByModule<double> alpha;  // lora_alpha, alpha_pattern
  bool by_root = false;    // use_rslora
  bool tied = false;       // ensure_weight_tying: what changes the embedding changes the output matrix, too

  // Scale of B A: lora_alpha / r, or lora_alpha / sqrt(r).
  float scale_of(std::string_view module) const;
  int rank_max() const;
};

// Reads <directory>/adapter_config.json. Errors: not_found; a field that is wrong, or asks for something that
// is not supported.
Result<AdapterConfig> load_adapter_config(const std::string& directory);

}  // namespace octavo
