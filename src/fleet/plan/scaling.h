// When an autoscaler would add and remove replicas: a dry run of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleet/plan/capacity.h"

namespace octavo::fleet {

struct ScalingRules {
  int replicas_min = 1;
  int replicas_max = 256;
  std::int64_t window_us = 60'000'000;             // a decision at the beginning of each
  std::int64_t scale_down_delay_us = 300'000'000;  // what is removed was not needed in this time
  std::int64_t startup_us = 30'000'000;  // from the decision until a replica takes requests; at most a window
};

struct WindowPlan {
  double load = 0;       // that came
  double predicted = 0;  // tokens a second
  int needed = 0;        // by the capacity table, within the limits
  int replicas = 0;      // decided
};

// The first window begins with `first` replicas: nothing is known yet.
std::vector<WindowPlan> plan_windows(std::span<const double> loads, std::span<const double> predicted,
                                     const CapacityTable& capacity, const ScalingRules& rules, int first);

// The same as the simulation takes it, for a trace that begins at this time: removed at once, added after
// startup_us.
std::vector<FleetSize> fleet_sizes(std::span<const WindowPlan> windows, const ScalingRules& rules,
                                   std::int64_t begin_us);

}  // namespace octavo::fleet
