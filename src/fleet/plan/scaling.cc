#include "fleet/plan/scaling.h"

#include <algorithm>

namespace octavo::fleet {

std::vector<WindowPlan> plan_windows(std::span<const double> loads, std::span<const double> predicted,
                                     const CapacityTable& capacity, const ScalingRules& rules, int first) {
  const auto remembered =
      static_cast<std::size_t>((rules.scale_down_delay_us + rules.window_us - 1) / rules.window_us);
  std::vector<WindowPlan> windows;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    WindowPlan window{.load = loads[i], .predicted = predicted[i], .needed = first};
    if (i > 0) window.needed = capacity.replicas_for(predicted[i]);
    window.needed = std::clamp(window.needed, rules.replicas_min, rules.replicas_max);
    window.replicas = window.needed;
    for (std::size_t j = i - std::min(i, remembered); j < i; ++j)
      window.replicas = std::max(window.replicas, windows[j].needed);
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
