// Rules by which an autoscaler adds and removes replicas, and a dry run of these rules.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fleet/plan/capacity.h"

namespace octavo::fleet {

struct ScalingRules {
  int replicas_min = 1;
  int replicas_max = 256;
  std::int64_t window_us = 60'000'000;             // time between two decisions
  std::int64_t scale_down_delay_us = 300'000'000;  // a replica is removed if it was not needed for this time
  std::int64_t startup_us = 30'000'000;  // time from the decision until a new replica accepts requests; at
                                         // most a window

  int bounded(int replicas) const;
};

// Adds replicas at once. Removes replicas that were not needed for scale_down_delay_us.
class SlowDescent {
 public:
  explicit SlowDescent(const ScalingRules& rules) : rules_(rules) {}

  // Returns the number of replicas for the window that begins now. needed: the number without the rules.
  // Times must ascend.
  int decide(std::int64_t now_us, int needed);

 private:
  struct Need {
    std::int64_t window_us;  // start of the window
    int replicas;
  };
  ScalingRules rules_;
  std::deque<Need> needs_;  // needs of the windows within the delay
};

struct WindowPlan {
  double load = 0;       // actual load in tokens/s
  double predicted = 0;  // predicted load in tokens/s
  int needed = 0;        // number from the capacity table, within the limits
  int replicas = 0;      // decided number
};

// first: number of replicas at the beginning of the first window.
std::vector<WindowPlan> plan_windows(std::span<const double> loads, std::span<const double> predicted,
                                     const CapacityTable& capacity, const ScalingRules& rules, int first);

// Converts the plan to changes for a simulation of a trace. Replicas are removed at once, and added after
// startup_us.
std::vector<FleetSize> fleet_sizes(std::span<const WindowPlan> windows, const ScalingRules& rules,
                                   std::int64_t begin_us);

}  // namespace octavo::fleet
