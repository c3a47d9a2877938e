// Finds the smallest prefill and decode pools that serve the traffic within an SLO.
#pragma once

#include <optional>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolSizing {
  int prefill = 0, decode = 0;
  Trial trial;
};

// Returns the sizes with the smallest sum, up to `most`, that meet the SLO. Returns nullopt if no
// sizes do. First finds the size of each pool while the other pool is large, and then tries sums in ascending
// order. Assumes that adding replicas never makes the service worse. The size of the prefill pool in
// `options` is ignored, but the pool must exist. Returns the errors of simulate().
Result<std::optional<PoolSizing>> size_pools(SimulationOptions options, const Trace& trace, const Slo& slo,
                                             int most, const TrialProgress& progress);

}  // namespace octavo::fleet
