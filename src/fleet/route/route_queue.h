// Queue where requests wait until a worker has capacity, with priorities and fair shares for tenants. Wraps
// FlowGate.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "fleet/balance/flow_gate.h"
#include "fleet/route/admission.h"
#include "fleet/route/queue_options.h"

namespace octavo::fleet {

class RouteQueue {
 public:
  // `balancer` must have BalancerOptions::learn_capacity.
  RouteQueue(Balancer& balancer, Admission& admission, const QueueOptions& options);

  std::uint64_t new_id() { return gate_.new_id(); }
  // Calls `then` once, on any thread. A dispatched request is admitted by Admission, and must call sent()
  // after it has chosen a worker.
  void enter(FlowItem item, FlowGate::Then then);
  void sent() { --dispatched_; }
  // Returns whether any worker may receive requests, even if it has no capacity now.
  bool has_workers() const;
  // Counts a request that pauses before it enters the queue again. The caller must call resume() after the
  // pause. Returns false if too many requests pause.
  bool pause();
  void resume() { --paused_; }
  void cancel(std::uint64_t id) { gate_.cancel(id); }
  void stop() { gate_.stop(); }
  std::string metrics() const { return gate_.metrics(); }

 private:
  bool has_room() const;

  Balancer& balancer_;
  Admission& admission_;
  const int size_;
  std::atomic<int> dispatched_ = 0;  // dispatched requests that have not chosen a worker yet
  std::atomic<int> paused_ = 0;
  FlowGate gate_;
};

}  // namespace octavo::fleet
