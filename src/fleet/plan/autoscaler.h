// Decides the number of replicas from their metrics, with two loops as in NVIDIA Dynamo's planner:
// - At the start of each window: the number that the capacity table gives for the predicted load (the floor).
// - Within a window: one more if all replicas exceed the SLO; one less, but not below the floor, if all are
//   well within it.
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
  double ttft_ms = 0, tpot_ms = 0;  // the SLO in ms; 0: no limit
  double down_sensitivity = 0.8;    // a replica below this fraction of the SLO is well within it
};

// The last inputs and decision, for metrics.
struct AutoscalerState {
  double load = 0, predicted = 0;     // tokens/s, measured in the last window and predicted for this one
  int floor = 0;                      // number of replicas from the capacity table
  int replicas = 0;                   // decided number
  int ready = 0;                      // number of replicas that were read
  double ttft_ms = -1, tpot_ms = -1;  // of the slowest replica
  std::string_view reason = "start";  // reason of the last decision that changed the number
};

class Autoscaler {
 public:
  // replicas: initial number.
  Autoscaler(const AutoscalerRules& rules, CapacityTable capacity, const Predictor& predictor, int replicas,
             std::int64_t now_us);

  // replicas: all replicas that accept requests. silent: number of replicas that did not answer; while their
  // load is unknown, no replica is removed. queued: number of requests waiting in routers; if there are no
  // replicas, they start the first one. Times must ascend.
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
  bool busy_ = false;     // a request ran at a replica, or waited, in the window
  bool unknown_ = false;  // a replica was silent in the window

  int extra_ = 0;  // number of replicas above the floor that were added because of latencies
  double tokens_per_request_ = 0;
  std::vector<double> loads_;     // loads of earlier windows
  std::int64_t not_idle_us_ = 0;  // last time when some replica was not well within the SLO
};

}  // namespace octavo::fleet
