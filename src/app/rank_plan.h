// Predicts memory and step times of the ranks of an engine, for `octavo model inspect --plan`.
#pragma once

#include <string>

#include "base/error.h"
#include "dist/rank_layout.h"

namespace octavo {

struct RankPlanOptions {
  RankLayout layout;
  bool whole_experts = false;
  // a name of known_devices(); "": no step times
  std::string device;
};

// Returns a line for each pipeline stage: layers, weights and KV cache of a rank, both in the checkpoint's
// format and in bf16, and the roofline time of a decode step. Errors are those of check_shard and
// divide_layers (a dimension that cannot be divided), and invalid_argument for an unknown device.
Result<std::string> rank_plan(const std::string& path, const RankPlanOptions& options);

}  // namespace octavo
