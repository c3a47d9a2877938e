#include "fleet/flow/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace octavo::fleet {

std::optional<std::string> ProbabilisticAdmitter::refusal(int priority,
                                                          std::span<const Member* const> candidates,
                                                          double draw) const {
  if (priority >= 0) return std::nullopt;
  double saturation = 0;
  for (const Member* member : candidates) {
    const EndpointState& state = member->state;
    saturation += state.observed_us == kNeverObserved
                      ? 1
                      : std::max(state.waiting / static_cast<double>(queue_depth_threshold),
                                 state.kv_usage / kv_usage_threshold);
  }
  saturation /= static_cast<double>(candidates.size());
  const double likely = std::min(1.0, std::pow(saturation, power) * k);
  if (draw >= likely) return std::nullopt;
  return fmt::format("probabilistic-admitter: rejected, saturation={:.3f} prob={:.2f}", saturation, likely);
}

}  // namespace octavo::fleet
