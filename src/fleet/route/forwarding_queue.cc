// The part of Forwarding about the queue. A request waits in the queue before its first attempt, and after
// workers have refused it because they had no capacity.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "fleet/route/forwarding.h"

namespace octavo::fleet {
namespace {

// greatest absolute priority; each priority is a separate band of the queue
constexpr int kPriorityMax = 100;

// Returns the request's band. Low values of `priority` are served first, as in vLLM. Lines of batches are
// served last.
int band_of(const http::Request& request, int priority) {
  if (request.origin == http::Request::Origin::background) return -kPriorityMax;
  return -std::clamp(priority, -kPriorityMax, kPriorityMax);
}

constexpr int kPauseMs = 50, kPauseMaxMs = 1'000;
constexpr double kWatchMs = 1'000;

}  // namespace

void Forwarding::enter() { context_.queue ? wait_for_room() : go(); }

// Ends the request if the client's deadline passes while it is in the queue. Timers cannot be cancelled, so
// each timer is short.
void Forwarding::watch_deadline() {
  const auto* queued = std::get_if<Queued>(&state_);
  const double own_s = in_.route().timeout_s;
  if (!queued || own_s <= 0) return;
  const double left_ms = std::clamp(std::ceil((own_s - in_.seconds()) * 1e3), 1.0, kWatchMs);
  loop_.after(static_cast<int>(left_ms), [weak = weak_from_this(), id = queued->id] {
    const auto self = weak.lock();
    const auto* still = self ? std::get_if<Queued>(&self->state_) : nullptr;
    if (!still || still->id != id) return;
    self->in_.past_own_deadline() ? self->too_late() : self->watch_deadline();
  });
}

void Forwarding::too_late() {
  leave();
  refuse_late();
}

void Forwarding::leave() {
  if (const auto* queued = std::get_if<Queued>(&state_); queued && queued->id != 0)
    context_.queue->cancel(queued->id);
}

void Forwarding::no_worker() {
  context_.queue ? wait_again() : refuse_for_now(503, "no replica is available");
}

void Forwarding::wait_for_room() {
  const http::Request& request = in_.request();
  FlowItem item{.id = context_.queue->new_id(),
                .priority = band_of(request, in_.route().priority),
                .bytes = request.body.size(),
                .arrived_us = in_.arrived_us()};
  if (!in_.tenant().empty())
    item.fairness_id = in_.tenant();
  else if (const auto id = request.headers.find("x-llm-d-inference-fairness-id"); id && !id->empty())
    item.fairness_id = *id;
  state_ = Queued{item.id};
  context_.queue->enter(std::move(item),
                        [&loop = loop_, self = shared_from_this()](FlowOutcome outcome) mutable {
                          loop.post([self = std::move(self), outcome] { self->leave_queue(outcome); });
                        });
  watch_deadline();
}

// Makes the request wait after workers have refused it or were unreachable. The first time, it enters the
// queue at once. If it is refused again, it first pauses. The queue's estimate of free capacity may be wrong
// then: other routers may use the same workers, or only a few workers serve the model.
void Forwarding::wait_again() {
  history_.tried.clear();
  // no worker is required, so the next attempt may use a different decode worker
  if (in_.route().stored_id.empty()) owner_.clear();
  history_.tries = 0;
  if (prefill_half_) settle(*prefill_half_, Outcome::neither);
  if (std::exchange(admitted_, false)) context_.admission.leave();
  if (history_.refusals++ == 0) return wait_for_room();
  if (!context_.queue->pause()) return refuse_waiting(FlowOutcome::rejected_capacity);
  state_ = Queued{};
  loop_.after(std::min(kPauseMs * history_.refusals, kPauseMaxMs), [self = shared_from_this()] {
    self->context_.queue->resume();
    if (!self->is<Over>()) self->wait_for_room();
  });
}

void Forwarding::leave_queue(FlowOutcome outcome) {
  const bool over = is<Over>();
  if (!over) state_ = Sent{};
  admitted_ = outcome == FlowOutcome::dispatched;
  if (admitted_ && !over) {
    if (history_.refusals == 0)
      go();
    else if (!send())
      wait_again();
  }
  if (outcome == FlowOutcome::dispatched) return context_.queue->sent();
  if (!over) refuse_waiting(outcome);
}

void Forwarding::refuse_waiting(FlowOutcome outcome) {
  if (outcome != FlowOutcome::rejected_capacity && history_.refusal)
    return answer(*std::move(history_.refusal));
  const QueueOptions& queue = context_.options.queue;
  const bool any = context_.queue->has_workers();
  const std::string_view why = any ? "all replicas are at their limit" : "no replica is available";
  if (outcome == FlowOutcome::rejected_capacity)
    return refuse_for_now(429, fmt::format("{}, and the queue is full (--queue-size {})", why, queue.size));
  if (outcome == FlowOutcome::evicted_ttl)
    return refuse_for_now(
        any ? 408 : 503,
        fmt::format("{} for --queue-timeout-secs {}",
                    any ? "all replicas were at their limit" : "no replica was available", queue.timeout_s));
  refuse_for_now(503, "no replica is available");
}

}  // namespace octavo::fleet
