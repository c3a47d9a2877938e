// Finds the numbers of prefill and decode replicas for some traffic.
#pragma once

#include <optional>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolSizing {
  int prefill = 0, decode = 0;  // replicas of each pool
  Trial trial;
};

// Returns the sizes with the smallest sum, at most `most`, that meet the SLO; nullopt if none do. First finds
// the size of each pool while the other pool is large, then tries sums in ascending order. Assumes that more
// replicas never serve worse. options: must have a prefill pool, whose size is replaced. Errors: those of
// simulate().
Result<std::optional<PoolSizing>> size_pools(SimulationOptions options, const Trace& trace, const Slo& slo,
                                             int most, const TrialProgress& progress);

}  // namespace octavo::fleet
