// Rules for adding and removing replicas, and a dry run of these rules on recorded traffic.
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
  std::int64_t window_us = 60'000'000;
  // a replica is removed if it was not needed for this time
  std::int64_t scale_down_delay_us = 300'000'000;
  // time from a decision until the new replica accepts requests, at most window_us
  std::int64_t startup_us = 30'000'000;

  int bounded(int replicas) const;
};

// Adds replicas at once, and removes replicas that were not needed for scale_down_delay_us.
class SlowDescent {
 public:
  explicit SlowDescent(const ScalingRules& rules) : rules_(rules) {}

  // Returns the number of replicas for the window that begins at now_us, which must not decrease. `needed`
  // is the number that the load requires.
  int decide(std::int64_t now_us, int needed);

 private:
  struct Need {
    std::int64_t window_us;
    int replicas;
  };
  ScalingRules rules_;
  std::deque<Need> needs_;  // windows within the last scale_down_delay_us
};

struct WindowPlan {
  double load = 0;       // tokens/s in the window
  double predicted = 0;  // predicted tokens/s
  int needed = 0;        // replicas that the capacity table requires, within replicas_min and replicas_max
  int replicas = 0;
};

// Decides the number of replicas in each window. `first` is the number before the first window.
std::vector<WindowPlan> plan_windows(std::span<const double> loads, std::span<const double> predicted,
                                     const CapacityTable& capacity, const ScalingRules& rules, int first);

// Converts the plan to size changes for a simulation. Additions take startup_us, removals take no time.
std::vector<FleetSize> fleet_sizes(std::span<const WindowPlan> windows, const ScalingRules& rules,
                                   std::int64_t begin_us);

}  // namespace octavo::fleet
