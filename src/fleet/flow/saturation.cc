#include "fleet/flow/saturation.h"

#include <algorithm>

namespace octavo::fleet {

double UtilizationDetector::saturation(const FleetView& view, std::int64_t now_us) const {
  if (view.members.empty()) return 1;
  double sum = 0;
  for (const Member& member : view.members) {
    const EndpointState& state = member.state;
    const bool stale = state.observed_us == kNeverObserved || now_us - state.observed_us > staleness_us;
    sum += stale ? 1 : std::max(state.waiting / queue_depth_threshold, state.kv_usage / kv_usage_threshold);
  }
  return sum / static_cast<double>(view.members.size());
}

double ConcurrencyDetector::saturation(const FleetView& view, const Inflight& inflight) const {
  if (view.members.empty()) return 1;
  std::int64_t requests = 0;
  for (const Member& member : view.members) requests += inflight.load(member.id).requests;
  return static_cast<double>(requests) /
         static_cast<double>(requests_max * static_cast<std::int64_t>(view.members.size()));
}

}  // namespace octavo::fleet
