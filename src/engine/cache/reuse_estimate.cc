#include "engine/cache/reuse_estimate.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

constexpr double kWeightMin = 0.02;      // weight of the newest pause
constexpr double kPriorPauses = 4;       // weight of the initial estimate, in pauses
constexpr double kVarianceMin = 0.04;    // lower limit, because pauses are never exactly regular
constexpr double kContinues = 31. / 32;  // fraction of turns after which a session has another turn
// Time in which a session is expected to continue, in median pauses. With a shorter time, all sessions with
// irregular pauses seem equally likely to continue, and LRU would keep more useful blocks
// (docs/design/sessions.md).
constexpr double kHorizon = 1;
constexpr double kShortestS = 1e-3;

}  // namespace

void ReuseEstimate::observe(std::int64_t pause_us) {
  const double x = std::log(std::max(static_cast<double>(pause_us) * 1e-6, kShortestS));
  const double off = x - mean_;
  const double weight = std::max(kWeightMin, 1.0 / (static_cast<double>(++pauses_) + kPriorPauses));
  mean_ += weight * off;
  variance_ = std::max(kVarianceMin, (1 - weight) * (variance_ + weight * off * off));
}

double ReuseEstimate::survival(double seconds) const {
  if (seconds <= 0) return 1;
  return 0.5 * std::erfc((std::log(seconds) - mean_) / std::sqrt(2 * variance_));
}

double ReuseEstimate::chance(std::int64_t idle_us) const {
  const double idle = static_cast<double>(idle_us) * 1e-6;
  const double now = kContinues * survival(idle);
  const double later = kContinues * survival(idle + kHorizon * std::exp(mean_));
  return (now - later) / (now + 1 - kContinues);
}

}  // namespace octavo
