// Reads vLLM's options --enable-eplb and --eplb-config, which balance experts among ranks at run time.
#pragma once

#include <string_view>

#include "base/error.h"

namespace octavo {

struct ExpertBalancing {
  bool enabled = false;
  int window_size = 1000;  // number of recent steps whose tokens are counted
  int step_interval = 3000;
  int redundant_experts = 0;  // redundant experts in each layer, summed over all ranks
  bool log_balancedness = false;
  // true: the experts of one layer move between two steps. false: the experts of all layers move at once.
  bool use_async = true;

  bool operator==(const ExpertBalancing&) const = default;
};

// Reads the JSON object of --eplb-config. `enabled` does not change. Errors: invalid_argument if a value is
// wrong (the message names the field and its limit).
Result<> read_eplb_config(std::string_view json, ExpertBalancing& options);

}  // namespace octavo
