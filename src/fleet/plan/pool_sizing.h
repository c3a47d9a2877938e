// Finds the smallest prefill and decode pools that serve the traffic within an SLO.
#pragma once

#include <optional>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolSizing {
  int prefill = 0, decode = 0;
  Trial trial;
};

// Returns the pool sizes with the smallest sum, up to `most`, that meet the SLO. Returns nullopt if none do.
// First finds the smallest size of each pool while the other pool has `most` - 1 replicas. Then tries sums in
// ascending order. Assumes that more replicas never make the service worse. Ignores the size of the prefill
// pool in `options`, but the pool must exist. Returns the errors of simulate().
Result<std::optional<PoolSizing>> size_pools(SimulationOptions options, const Trace& trace, const Slo& slo,
                                             int most, const TrialProgress& progress);

}  // namespace octavo::fleet
