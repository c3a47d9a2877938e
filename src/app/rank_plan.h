// Predicts memory and step times of an engine's ranks: `octavo model inspect --plan`.
#pragma once

#include <string>

#include "base/error.h"
#include "dist/rank_layout.h"

namespace octavo {

struct RankPlanOptions {
  RankLayout layout;
  bool whole_experts = false;
  std::string device;  // one of known_devices(); empty: no step times
};

// Returns text with a line for each stage, whose ranks are equal: layers, weights and KV cache of a rank, in
// the checkpoint's format and in bf16, and the roofline time of a decode step on the device. Errors: those of
// check_shard and divide_layers, which name what cannot be divided; invalid_argument for an unknown device.
Result<std::string> rank_plan(const std::string& path, const RankPlanOptions& options);

}  // namespace octavo
