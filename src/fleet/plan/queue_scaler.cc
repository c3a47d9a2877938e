#include "fleet/plan/queue_scaler.h"

#include <algorithm>
#include <cmath>

namespace octavo::fleet {
namespace {

// no replica is added or removed if the ratio of the load to the target differs from 1 by at most this value
constexpr double kTolerance = 0.1;
constexpr int kAddedMax = 4;  // maximum number of replicas to add at one reading, unless doubling adds more

}  // namespace

int QueueScaler::read(std::int64_t now_us, std::span<const ReplicaReading> replicas) {
  double requests = 0;
  for (const ReplicaReading& one : replicas) requests += one.running + one.waiting;
  const auto existing = static_cast<int>(replicas.size());
  if (replicas_ == 0) replicas_ = existing;
  const double ratio = requests / (static_cast<double>(existing) * target_);
  int wish = replicas_;
  if (std::abs(ratio - 1) > kTolerance) wish = static_cast<int>(std::ceil(requests / target_ - 1e-9));
  wish = rules_.bounded(std::min(wish, std::max(2 * replicas_, replicas_ + kAddedMax)));
  wishes_.push_back({now_us, wish});
  while (wishes_.front().time_us < now_us - rules_.scale_down_delay_us) wishes_.pop_front();
  const int highest = std::ranges::max(wishes_, {}, &Wish::replicas).replicas;
  replicas_ = wish >= replicas_ ? wish : std::min(replicas_, highest);
  return replicas_;
}

}  // namespace octavo::fleet
