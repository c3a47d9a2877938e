// The part of World about the steps of replicas and the order of events.
#include "fleet/simulate/world.h"

#include "base/check.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kReadAhead = 4;  // number of sequences of a step whose data are prefetched
constexpr auto kStep = std::numeric_limits<std::size_t>::max();

void prefetch(const void* data, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(static_cast<const char*>(data) + i);
}

}  // namespace

Result<SimulationResult> World::run(std::vector<PoolOptions> policies) {
  const auto& requests = trace_.requests;
  const std::int64_t began_us = now_us_ = trace_.closed ? 0 : requests.front().arrival_us;
  TRY(balancer_, Balancer::make({.pools = std::move(policies),
                                 .clock = [this] { return now_us_; },
                                 .seed = options_.seed,
                                 .availability_changed = [](const Endpoint&, Availability) {}}));
  requests_.bookings.resize(requests.size());
  requests_.apart.resize(requests.size());
  result_.answers.resize(requests.size());
  if (trace_.closed) plan_followers();
  for (int i = 0; i < options_.prefill.replicas; ++i) TRY_VOID(add_replica(pools_.front()));
  TRY_VOID(resize(options_.replicas));
  for (SimulatedReplica& replica : replicas_) replica.started_us = now_us_;
  std::int64_t gauges_us = now_us_;
  if (options_.scaling.replicas) reading_us_ = now_us_ + options_.scaling.interval_us;
  std::size_t arrived = trace_.closed ? requests.size() : 0;
  while (requests_.ended < requests.size()) {
    const std::int64_t thought_us = requests_.thoughts.empty() ? kNoEvent : requests_.thoughts.top().until_us;
    const std::int64_t arrival_us = arrived < requests.size() ? requests[arrived].arrival_us : thought_us;
    const std::int64_t event_us = events_.empty() ? kNoEvent : events_.front().time_us;
    const std::int64_t change_us = next_change_us();
    if (change_us <= std::min({gauges_us, arrival_us, event_us})) {
      now_us_ = std::max(now_us_, change_us);
      TRY_VOID(change_fleet());
    } else if (gauges_us <= std::min(arrival_us, event_us)) {
      now_us_ = gauges_us;
      read_gauges();
      gauges_us += options_.metrics_interval_us;
    } else if (event_us <= arrival_us) {
      CHECK(event_us != kNoEvent, "{} requests never end", requests.size() - requests_.ended);
      const Event event = pop();
      now_us_ = event_us;
      event.request == kStep ? end_step(event.replica) : end_transfer(event.request, event.replica);
    } else {
      now_us_ = arrival_us;
      const std::size_t number = trace_.closed ? requests_.thoughts.top().request : arrived++;
      if (trace_.closed) requests_.thoughts.pop();
      arrive(number);
    }
  }
  read_gauges();
  result_.duration_us = now_us_ - began_us;
  for (EndpointId id = 0; id < replicas_.size(); ++id)
    if (replicas_[id].scheduler) retire(id);
  for (const std::int64_t decided_us : starting_)
    result_.replicas.push_back({.lifetime_us = now_us_ - decided_us});
  return std::move(result_);
}

void World::begin_step(EndpointId id) {
  SimulatedReplica& replica = replicas_[id];
  replica.scheduler->plan(replica.step);
  // If the blocks of received prompts leave no blocks for output tokens, drops the newest received prompt.
  // The replica computes it again later.
  while (replica.step.empty() && !replica.handed.empty() && replica.scheduler->stats().waiting > 0) {
    let_go(replica, replica.handed.back().first);
    replica.scheduler->plan(replica.step);
  }
  replica.busy = !replica.step.empty();
  if (!replica.busy) {
    if (replica.draining) retire(id);
    return;
  }
  StepWork work;
  for (const PlannedSequence& planned : replica.step.sequences) work.add(planned.first, planned.count);
  const auto duration_us = static_cast<std::int64_t>(
      static_cast<double>(pool(replica.role).timing.microseconds(work)) * replica.slowdown);
  replica.use.busy_us += duration_us;
  ++replica.use.steps;
  push({now_us_ + duration_us, id, kStep});
}

void World::end_step(EndpointId id) {
  SimulatedReplica& replica = replicas_[id];
  replica.scheduler->collect(replica.step.step);
  for (const PlannedSequence& planned : replica.step.sequences)
    if (planned.samples) token(planned.tag, planned, replica);
  if (replica.events && !replica.draining) report_events(id);
  begin_step(id);
  begin_transfers(id);
}

void World::push(const Event& event) {
  events_.push_back(event);
  std::ranges::push_heap(events_, std::greater());
}

World::Event World::pop() {
  std::ranges::pop_heap(events_, std::greater());
  const Event event = events_.back();
  events_.pop_back();
  read_ahead();
  return event;
}

// The state of many replicas exceeds the CPU caches. So this prefetches the data of the next events, which
// are near the front of the heap. Events farther from the front get an earlier stage of the prefetch, whose
// data contain the pointers for the later stages.
void World::read_ahead() const {
  const auto each = [this](std::size_t first, auto&& bring) {
    for (std::size_t i = first; i < std::min(2 * first + 1, events_.size()); ++i)
      if (events_[i].request == kStep) bring(replicas_[events_[i].replica]);
  };
  each(7, [](const SimulatedReplica& replica) { prefetch(&replica, sizeof replica); });
  each(3, [](const SimulatedReplica& replica) {
    prefetch(replica.scheduler.get(), sizeof(Scheduler));
    prefetch(replica.step.sequences.data(), kReadAhead * sizeof(PlannedSequence));
  });
  each(1, [](const SimulatedReplica& replica) {
    const std::span planned(replica.step.sequences);
    for (const PlannedSequence& one : planned.first(std::min(kReadAhead, planned.size())))
      if (const Sequence* sequence = replica.scheduler->find(one.sequence))
        prefetch(sequence, sizeof *sequence);
  });
}

}  // namespace octavo::fleet
