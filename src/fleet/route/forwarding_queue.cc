// Forwarding: a request in the queue, before its first attempt and again after workers have refused it for
// lack of capacity.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "fleet/route/forwarding.h"

namespace octavo::fleet {
namespace {

constexpr int kPriorityMax = 100;  // each priority is a band of the queue

// The band of a request. As in vLLM, low values are first; lines of batches are last.
int band_of(const http::Request& request, int priority) {
  if (request.origin == http::Request::Origin::background) return -kPriorityMax;
  return -std::clamp(priority, -kPriorityMax, kPriorityMax);
}

constexpr int kPauseMs = 50, kPauseMaxMs = 1'000;

}  // namespace

void Forwarding::enter() { context_.queue ? wait_for_room() : go(); }

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
}

// After the first refusal, enters the queue at once: the queue now knows that no worker has capacity. After
// later refusals, pauses first: the queue may be wrong about the workers, since other routers use them or few
// serve the model.
void Forwarding::wait_again() {
  history_.tried.clear();
  history_.tries = 0;
  if (prefill_half_) settle(*prefill_half_, Outcome::neither);
  if (std::exchange(admitted_, false)) context_.admission.leave();
  if (history_.refusals++ == 0) return wait_for_room();
  state_ = Queued{};
  loop_.after(std::min(kPauseMs * history_.refusals, kPauseMaxMs), [self = shared_from_this()] {
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
      refuse(503, "no replica is available");
  }
  if (admitted_) return context_.queue->sent();
  if (over) return;
  if (outcome != FlowOutcome::rejected_capacity && history_.refusal)
    return answer(*std::move(history_.refusal));
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
