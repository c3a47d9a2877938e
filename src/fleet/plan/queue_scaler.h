// Kubernetes' HorizontalPodAutoscaler on the requests that replicas have, as a yardstick: its algorithm and
// its defaults, https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "fleet/plan/scaling.h"
#include "fleet/view/replica_reading.h"

namespace octavo::fleet {

class QueueScaler {
 public:
  static constexpr std::int64_t kIntervalUs = 15'000'000;  // from one reading to the next

  // target: average number of waiting and running requests per replica. Uses the bounds of the rules, and
  // scale_down_delay_us as the stabilisation of scaling down.
  QueueScaler(const ScalingRules& rules, double target) : rules_(rules), target_(target) {}

  int read(std::int64_t now_us, std::span<const ReplicaReading> replicas);

 private:
  struct Wish {
    std::int64_t time_us;
    int replicas;
  };
  ScalingRules rules_;
  double target_;
  int replicas_ = 0;  // the last decision
  std::deque<Wish> wishes_;
};

}  // namespace octavo::fleet
