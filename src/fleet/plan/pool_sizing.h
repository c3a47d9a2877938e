// Finds the numbers of prefill and decode replicas that some traffic needs.
#pragma once

#include <optional>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolSizing {
  int prefill = 0, decode = 0;  // numbers of replicas
  Trial trial;
};

// The sizes with the smallest sum, at most `most`, that meet the SLO; nullopt: none do. First finds the size
// of each pool while the other one is large; then tries sums from there on. Assumes that more replicas never
// serve worse. options: must have a prefill pool, whose size is replaced. Errors: as for simulate().
Result<std::optional<PoolSizing>> size_pools(SimulationOptions options, const Trace& trace, const Slo& slo,
                                             int most, const TrialProgress& progress);

}  // namespace octavo::fleet
