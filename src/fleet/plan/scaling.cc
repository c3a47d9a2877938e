#include "fleet/plan/scaling.h"

#include <algorithm>

namespace octavo::fleet {

int ScalingRules::bounded(int replicas) const { return std::clamp(replicas, replicas_min, replicas_max); }

int SlowDescent::decide(std::int64_t now_us, int needed) {
  needs_.push_back({now_us, needed});
  while (needs_.front().window_us + rules_.window_us <= now_us - rules_.scale_down_delay_us)
    needs_.pop_front();
  return std::ranges::max(needs_, {}, &Need::replicas).replicas;
}

std::vector<WindowPlan> plan_windows(std::span<const double> loads, std::span<const double> predicted,
                                     const CapacityTable& capacity, const ScalingRules& rules, int first) {
  SlowDescent descent(rules);
  std::vector<WindowPlan> windows;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    WindowPlan window{.load = loads[i], .predicted = predicted[i]};
    window.needed = rules.bounded(i > 0 ? capacity.replicas_for(predicted[i]) : first);
    window.replicas = descent.decide(static_cast<std::int64_t>(i) * rules.window_us, window.needed);
    windows.push_back(window);
  }
  return windows;
}

std::vector<FleetSize> fleet_sizes(std::span<const WindowPlan> windows, const ScalingRules& rules,
                                   std::int64_t begin_us) {
  std::vector<FleetSize> sizes;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    const int before = windows[i - 1].replicas, now = windows[i].replicas;
    if (before == now) continue;
    const std::int64_t decided_us = begin_us + static_cast<std::int64_t>(i) * rules.window_us;
    sizes.push_back({decided_us + (now > before ? rules.startup_us : 0), now});
  }
  return sizes;
}

}  // namespace octavo::fleet
