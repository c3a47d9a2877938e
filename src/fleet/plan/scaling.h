// When an autoscaler adds and removes replicas by load, and a dry run of that.
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
  std::int64_t window_us = 60'000'000;             // a decision at the beginning of each
  std::int64_t scale_down_delay_us = 300'000'000;  // what is removed was not needed in this time
  std::int64_t startup_us = 30'000'000;  // from the decision until a replica takes requests; at most a window

  int bounded(int replicas) const;
};

// Adds at once, and removes what was not needed for a while.
class SlowDescent {
 public:
  explicit SlowDescent(const ScalingRules& rules) : rules_(rules) {}

  // Returns the number of replicas for the window that begins now, given the needed number and the limits.
  // Times ascend.
  int decide(std::int64_t now_us, int needed);

 private:
  struct Need {
    std::int64_t window_us;  // that began then
    int replicas;
  };
  ScalingRules rules_;
  std::deque<Need> needs_;  // of the windows that count
};

struct WindowPlan {
  double load = 0;       // that came
  double predicted = 0;  // tokens a second
  int needed = 0;        // by the capacity table, within the limits
  int replicas = 0;      // decided
};

// The first window begins with `first` replicas, since nothing is known.
std::vector<WindowPlan> plan_windows(std::span<const double> loads, std::span<const double> predicted,
                                     const CapacityTable& capacity, const ScalingRules& rules, int first);

// The same as the simulation takes it, for a trace that begins at this time: removed at once, added after
// startup_us.
std::vector<FleetSize> fleet_sizes(std::span<const WindowPlan> windows, const ScalingRules& rules,
                                   std::int64_t begin_us);

}  // namespace octavo::fleet
