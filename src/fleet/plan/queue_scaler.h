// Kubernetes' HorizontalPodAutoscaler on requests per replica, as a baseline for the autoscaler. Algorithm
// and defaults: https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "fleet/plan/scaling.h"
#include "fleet/view/replica_reading.h"

namespace octavo::fleet {

class QueueScaler {
 public:
  static constexpr std::int64_t kIntervalUs = 15'000'000;

  // `target` is the mean number of waiting and running requests per replica. Only two rules are used: the
  // limits on the number of replicas, and scale_down_delay_us.
  QueueScaler(const ScalingRules& rules, double target) : rules_(rules), target_(target) {}

  int read(std::int64_t now_us, std::span<const ReplicaReading> replicas);

 private:
  struct Wish {
    std::int64_t time_us;
    int replicas;
  };
  ScalingRules rules_;
  double target_;
  int replicas_ = 0;
  std::deque<Wish> wishes_;
};

}  // namespace octavo::fleet
