// A request in the queue: before its first attempt, and again when workers refuse it for lack of room.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "fleet/route/forwarding.h"

namespace octavo::fleet {
namespace {

constexpr int kPriorityMax = 100;  // each priority is a band of the queue
constexpr int kPauseMs = 50, kPauseMaxMs = 1'000;

}  // namespace

void Forwarding::enter() { context_.queue ? wait_for_room() : go(); }

void Forwarding::wait_for_room() {
  const http::Request& request = exchange_->request();
  FlowItem item{
      .id = context_.queue->new_id(),
      .priority = -std::clamp(request_.priority, -kPriorityMax, kPriorityMax),  // vLLM's: low ones first
      .bytes = request.body.size(),
      .arrived_us = arrived_us_};
  if (!tenant_.empty())
    item.fairness_id = tenant_;
  else if (const auto id = request.headers.find("x-llm-d-inference-fairness-id"); id && !id->empty())
    item.fairness_id = *id;
  phase_ = Phase::queued;
  queued_ = item.id;
  context_.queue->enter(std::move(item),
                        [&loop = loop_, self = shared_from_this()](FlowOutcome outcome) mutable {
                          loop.post([self = std::move(self), outcome] { self->leave_queue(outcome); });
                        });
}

// At once after the first refusal: the queue now knows that no worker has room. Later refusals may come from
// workers that the queue cannot judge, since others serve them or few serve the model.
void Forwarding::wait_again() {
  tried_.clear();
  tries_ = 0;
  if (std::exchange(admitted_, false)) context_.admission.leave();
  if (refusals_++ == 0) return wait_for_room();
  phase_ = Phase::queued;
  loop_.after(std::min(kPauseMs * refusals_, kPauseMaxMs), [self = shared_from_this()] {
    if (self->phase_ != Phase::over) self->wait_for_room();
  });
}

void Forwarding::leave_queue(FlowOutcome outcome) {
  queued_ = 0;
  admitted_ = outcome == FlowOutcome::dispatched;
  if (admitted_ && phase_ != Phase::over) {
    phase_ = Phase::waiting;
    if (refusals_ == 0)
      go();
    else if (!send())
      refuse(503, "no replica is available");
  }
  if (admitted_) return context_.queue->sent();
  if (phase_ == Phase::over) return;
  phase_ = Phase::waiting;
  if (outcome != FlowOutcome::rejected_capacity && refusal_) return answer(*std::move(refusal_));
  switch (outcome) {
    case FlowOutcome::rejected_capacity:
      return refuse(429, fmt::format("no replica has room, and --queue-size {} requests wait",
                                     context_.options.queue.size));
    case FlowOutcome::evicted_ttl:
      return refuse(408, fmt::format("no replica had room within --queue-timeout-secs {}",
                                     context_.options.queue.timeout_s));
    default:
      return refuse(503, "no replica is available");
  }
}

}  // namespace octavo::fleet
