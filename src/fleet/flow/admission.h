// Who is let in although there is room to wait: probabilistic-admitter (llm-d's).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

// Requests of priorities below 0 are refused the likelier the more of the candidates' room is taken:
// min(1, k saturation^power).
struct ProbabilisticAdmitter {
  std::int64_t queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  double power = 5;
  double k = 300;

  // Why it is refused; nothing: it is not. draw: 0 to 1. candidates: at least one.
  std::optional<std::string> refusal(int priority, std::span<const Member* const> candidates,
                                     double draw) const;
};

}  // namespace octavo::fleet
