// --enable-eplb, --eplb-config: how the experts of ranks are balanced while they serve, in vLLM's words.
#pragma once

#include <string_view>

#include "base/error.h"

namespace octavo {

struct ExpertBalancing {
  bool enabled = false;
  int window_size = 1000;    // steps whose tokens count
  int step_interval = 3000;  // between two plans
  int redundant_experts =
      0;  // places beside those that hold each expert once; of every layer, over all ranks
  bool log_balancedness = false;
  // true: the experts of one layer move between two steps; false: those of all layers.
  bool use_async = true;

  bool operator==(const ExpertBalancing&) const = default;
};

// The JSON object of --eplb-config; `enabled` stays as it is. Errors: invalid, naming field and limit.
Result<> read_eplb_config(std::string_view json, ExpertBalancing& options);

}  // namespace octavo
