#include "fleet/route/route_queue.h"

#include <utility>

#include "fleet/decide/eligible.h"

namespace octavo::fleet {
namespace {

FlowOptions flow_options(const QueueOptions& options) {
  BandOptions band;
  band.requests_max = static_cast<std::uint64_t>(options.size);
  band.fairness = make_fairness("round-robin-fairness-policy");
  return {.requests_max = static_cast<std::uint64_t>(options.size),
          .ttl_us = std::int64_t{1'000'000} * options.timeout_s,
          .default_band = band,
          .default_negative_band = band};
}

}  // namespace

RouteQueue::RouteQueue(Balancer& balancer, Admission& admission, const QueueOptions& options)
    : balancer_(balancer),
      admission_(admission),
      size_(options.size),
      gate_(balancer, {.flow = flow_options(options),
                       .saturation = [this] { return has_room() ? 0 : 1; },
                       .program = "route"}) {}

bool RouteQueue::has_room() const {
  return !admission_.full() && has_workers() && balancer_.room() > dispatched_;
}

bool RouteQueue::has_workers() const {
  Candidates found;
  eligible(*balancer_.fleet().view(), {}, Role::decode, {}, found);
  return !found.empty();
}

bool RouteQueue::pause() {
  if (++paused_ <= size_) return true;
  --paused_;
  return false;
}

// FlowGate dispatches one request at a time, so that its next decision takes this request into account.
void RouteQueue::enter(FlowItem item, FlowGate::Then then) {
  gate_.enqueue(std::move(item), [this, then = std::move(then)](FlowOutcome outcome) {
    if (outcome == FlowOutcome::dispatched) {
      ++dispatched_;
      admission_.enter();
    }
    then(outcome);
  });
}

}  // namespace octavo::fleet
