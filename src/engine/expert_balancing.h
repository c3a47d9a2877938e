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
  // true: move the experts of one layer between two steps. false: move those of all layers at once.
  bool use_async = true;

  bool operator==(const ExpertBalancing&) const = default;
};

// Reads the JSON object of --eplb-config; `enabled` stays unchanged. Errors: invalid, naming the field
// and its limit.
Result<> read_eplb_config(std::string_view json, ExpertBalancing& options);

}  // namespace octavo
