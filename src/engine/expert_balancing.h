// --enable-eplb, --eplb-config: options for balancing experts among ranks at run time, as in vLLM.
#pragma once

#include <string_view>

#include "base/error.h"

namespace octavo {

struct ExpertBalancing {
  bool enabled = false;
  int window_size = 1000;  // number of recent steps whose tokens are counted
  int step_interval = 3000;
  int redundant_experts = 0;  // number of redundant experts per layer, over all ranks
  bool log_balancedness = false;
  // true: between two steps, the experts of one layer move; false: those of all layers move.
  bool use_async = true;

  bool operator==(const ExpertBalancing&) const = default;
};

// Reads the JSON object of --eplb-config; `enabled` stays unchanged. Returns invalid, with the field and its
// limit.
Result<> read_eplb_config(std::string_view json, ExpertBalancing& options);

}  // namespace octavo
