// Finds how many prefill and how many decode replicas some traffic needs, each pool on its own.
#pragma once

#include <optional>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolSizing {
  int prefill = 0, decode = 0;  // replicas
  Trial trial;
};

// The smallest sum of both pools, at most `most`, that meets the SLO; nullopt if none does. First each pool
// alone, beside a large other one; then the sums from there on. Assumes that more replicas never serve worse.
// options: with a prefill pool, whose size is replaced. Errors: those of simulate().
Result<std::optional<PoolSizing>> size_pools(SimulationOptions options, const Trace& trace, const Slo& slo,
                                             int most, const TrialProgress& progress);

}  // namespace octavo::fleet
