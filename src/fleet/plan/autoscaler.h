// Decides the number of replicas from their metrics, with two loops like NVIDIA Dynamo's planner:
// 1. At the end of each window, predicts the load and looks up the number of replicas in the capacity table.
// This number is the floor.
// 2. Within a window, adds one replica if all replicas miss the SLO. Removes one of the replicas above the
// floor if all replicas are well within the SLO.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/plan/capacity.h"
#include "fleet/plan/forecast.h"
#include "fleet/plan/scaling.h"
#include "fleet/view/replica_reading.h"

namespace octavo::fleet {

struct AutoscalerRules {
  ScalingRules scaling = {};
  double ttft_ms = 0, tpot_ms = 0;  // SLO in ms; 0: no limit
  double down_sensitivity = 0.8;    // a latency below this fraction of the SLO is well within the SLO
};

struct AutoscalerState {
  double load = 0, predicted = 0;  // tokens/s in the last window, and predicted for the current window
  int floor = 0;                   // replicas that the capacity table requires
  int replicas = 0;
  int ready = 0;
  double ttft_ms = -1, tpot_ms = -1;  // latencies of the slowest replica
  std::string_view reason = "start";  // reason for the last change of the number of replicas
};

class Autoscaler {
 public:
  Autoscaler(const AutoscalerRules& rules, CapacityTable capacity, const Predictor& predictor, int replicas,
             std::int64_t now_us);

  // Reads metrics, and returns the decision. `replicas` has all replicas that accept requests. `silent` is
  // the number of replicas that did not respond; if it is above 0, no replica is removed. `queued` is the
  // number of requests in the routers' queues; a queued request starts the first replica. now_us must not
  // decrease.
  const AutoscalerState& read(std::int64_t now_us, std::span<const ReplicaReading> replicas, int silent,
                              double queued = 0);
  const AutoscalerState& state() const { return state_; }

 private:
  void end_window(std::int64_t now_us, double waiting);
  void correct(std::int64_t now_us, std::span<const ReplicaReading> replicas);
  void decide(std::string_view reason);

  const AutoscalerRules rules_;
  const CapacityTable capacity_;
  const Predictor& predictor_;
  SlowDescent descent_;
  AutoscalerState state_;

  std::int64_t window_began_us_;
  double tokens_ = 0, finished_ = 0;
  double waiting_before_ = 0;
  bool busy_ = false;     // a request was running or waiting in the current window
  bool unknown_ = false;  // a replica did not respond in the current window

  int extra_ = 0;  // replicas above the floor, added because of latencies
  double tokens_per_request_ = 0;
  std::vector<double> loads_;
  std::int64_t not_idle_us_ = 0;  // last time at which a replica was not well within the SLO
};

}  // namespace octavo::fleet
