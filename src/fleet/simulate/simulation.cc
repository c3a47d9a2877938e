#include "fleet/simulate/simulation.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>
#include <utility>

#include "base/check.h"
#include "fleet/decide/pipeline.h"
#include "fleet/view/fleet_view.h"
#include "schedule/scheduler.h"

namespace octavo::fleet {
namespace {

constexpr TokenId kAnswerToken = 0;
constexpr std::int64_t kExpireUs = 1'000'000;  // as the router does
constexpr std::size_t kProgressEvery = 256;
constexpr auto kNoEvent = std::numeric_limits<std::int64_t>::max();

struct Replica {
  std::unique_ptr<Scheduler> scheduler;  // null: gone, its id is free
  std::int64_t started_us = 0;
  StepPlan step = {};  // that runs
  bool busy = false;
  bool draining = false;  // takes no requests any more
  ReplicaUse use = {};
};

class World {
 public:
  World(const SimulationOptions& options, const Trace& trace, Pipeline policy,
        const std::function<void(std::size_t, std::size_t)>& progress)
      : options_(options), trace_(trace), policy_(std::move(policy)), progress_(progress) {}

  Result<SimulationResult> run();

 private:
  // The end of the step that a replica runs.
  struct StepEnd {
    std::int64_t time_us;
    EndpointId replica;
    auto operator<=>(const StepEnd&) const = default;
  };

  Result<> resize(int replicas);
  Result<> add_replica();
  void drain(EndpointId id);
  void leave(EndpointId id);
  void retire(EndpointId id);
  void arrive(std::size_t number);
  void begin_step(EndpointId id);
  void end_step(EndpointId id);
  void token(std::size_t number, const PlannedSequence& planned, Replica& replica);
  void read_gauges();
  void ended();

  const SimulationOptions& options_;
  const Trace& trace_;
  Pipeline policy_;
  const std::function<void(std::size_t, std::size_t)>& progress_;

  std::int64_t now_us_ = 0;
  Fleet fleet_;
  Inflight inflight_;
  Decision decision_;
  std::vector<Replica> replicas_;    // [EndpointId]
  std::vector<EndpointId> serving_;  // that take requests, in the order of their starts
  std::int64_t starts_ = 0;
  std::vector<Booking> bookings_;  // [request]
  std::priority_queue<StepEnd, std::vector<StepEnd>, std::greater<>> step_ends_;
  std::size_t ended_ = 0;
  std::int64_t expired_us_ = 0;
  std::int64_t prompt_tokens_ = 0;  // see FleetSample
  std::int64_t cached_tokens_ = 0;
  SimulationResult result_;

  RouteRequest route_;           // scratch
  std::vector<TokenId> prompt_;  // scratch
};

Result<SimulationResult> World::run() {
  const auto& requests = trace_.requests;
  bookings_.resize(requests.size());
  result_.answers.resize(requests.size());
  const std::int64_t began_us = now_us_ = expired_us_ = requests.front().arrival_us;
  TRY_VOID(resize(options_.replicas));
  for (Replica& replica : replicas_) replica.started_us = now_us_;
  std::int64_t gauges_us = now_us_;
  std::size_t arrived = 0, resized = 0;
  while (ended_ < requests.size()) {
    const std::int64_t arrival_us = arrived < requests.size() ? requests[arrived].arrival_us : kNoEvent;
    const std::int64_t step_us = step_ends_.empty() ? kNoEvent : step_ends_.top().time_us;
    const std::int64_t size_us = resized < options_.sizes.size() ? options_.sizes[resized].time_us : kNoEvent;
    if (size_us <= std::min({gauges_us, arrival_us, step_us})) {
      now_us_ = std::max(now_us_, size_us);
      TRY_VOID(resize(options_.sizes[resized++].replicas));
    } else if (gauges_us <= std::min(arrival_us, step_us)) {
      now_us_ = gauges_us;
      read_gauges();
      gauges_us += options_.metrics_interval_us;
    } else if (step_us <= arrival_us) {
      CHECK(step_us != kNoEvent, "{} requests never end", requests.size() - ended_);
      now_us_ = step_us;
      const EndpointId replica = step_ends_.top().replica;
      step_ends_.pop();
      end_step(replica);
    } else {
      now_us_ = arrival_us;
      arrive(arrived++);
    }
  }
  read_gauges();
  result_.duration_us = now_us_ - began_us;
  for (EndpointId id = 0; id < replicas_.size(); ++id)
    if (replicas_[id].scheduler) retire(id);
  return std::move(result_);
}

Result<> World::resize(int replicas) {
  const auto count = static_cast<std::size_t>(replicas);
  while (serving_.size() < count) TRY_VOID(add_replica());
  while (serving_.size() > count) {
    drain(serving_.back());
    serving_.pop_back();
  }
  fleet_.update([](Member& member) {
    return std::exchange(member.state.availability, Availability::available) != Availability::available;
  });
  return {};
}

Result<> World::add_replica() {
  TRY(auto scheduler, Scheduler::create(options_.scheduler));
  const std::string name = fmt::format("replica-{}:8000", starts_++);
  TRY(const EndpointId id, fleet_.add({.name = name, .url = "http://" + name}));
  if (id == replicas_.size()) replicas_.emplace_back();
  replicas_[id] = {.scheduler = std::move(scheduler), .started_us = now_us_ - options_.startup_us};
  serving_.push_back(id);
  return {};
}

void World::drain(EndpointId id) {
  policy_.forget(id);
  CHECK(fleet_.remove(id));
  replicas_[id].draining = true;
  if (!replicas_[id].busy) leave(id);
}

void World::leave(EndpointId id) {
  retire(id);
  fleet_.release(id);
}

// Notes what became of it.
void World::retire(EndpointId id) {
  Replica& replica = replicas_[id];
  replica.use.there_us = now_us_ - replica.started_us;
  replica.use.preemptions = replica.scheduler->stats().preemptions;
  result_.replicas.push_back(replica.use);
  replica = {};
}

// What the router does with a request, and then the replica.
void World::arrive(std::size_t number) {
  const TraceRequest& request = trace_.requests[number];
  traffic::AnswerTimes& answer = result_.answers[number];
  answer.sent_us = now_us_;
  answer.input_tokens = request.input_tokens;
  write_tokens(trace_, request, prompt_);
  write_text(trace_, request, route_.text);
  route_.tokens.assign(prompt_.begin(), prompt_.end());
  route_.tokens_are_exact = true;
  route_.output_tokens_max = request.output_tokens;

  const auto view = fleet_.view();
  Cycle cycle{*view, route_, inflight_, now_us_, Draws(random_bits(options_.seed, number))};
  policy_.choose(cycle, Role::both, {}, decision_);
  const EndpointId id = decision_.chosen();
  if (id == kNoEndpoint) return ended();
  policy_.sent(cycle, id);
  const auto added = replicas_[id].scheduler->add(
      {.prompt = prompt_, .max_total_tokens = request.input_tokens + request.output_tokens, .tag = number});
  if (!added) return ended();
  bookings_[number] = inflight_.book(id, request.input_tokens, request.input_tokens);
  if (!replicas_[id].busy) begin_step(id);
}

void World::begin_step(EndpointId id) {
  Replica& replica = replicas_[id];
  replica.scheduler->plan(replica.step);
  replica.busy = !replica.step.empty();
  if (!replica.busy) {
    if (replica.draining) leave(id);
    return;
  }
  StepWork work;
  for (const PlannedSequence& planned : replica.step.sequences) work.add(planned.first, planned.count);
  const std::int64_t duration_us = options_.timing.microseconds(work);
  replica.use.busy_us += duration_us;
  ++replica.use.steps;
  step_ends_.push({now_us_ + duration_us, id});
}

void World::end_step(EndpointId id) {
  Replica& replica = replicas_[id];
  replica.scheduler->collect(replica.step.step);
  for (const PlannedSequence& planned : replica.step.sequences)
    if (planned.samples) token(planned.tag, planned, replica);
  begin_step(id);
}

// A request has its next token.
void World::token(std::size_t number, const PlannedSequence& planned, Replica& replica) {
  traffic::AnswerTimes& answer = result_.answers[number];
  replica.scheduler->commit(planned.sequence, kAnswerToken);
  if (answer.output_tokens == 0) {
    answer.first_us = now_us_;
    prompt_tokens_ += answer.input_tokens;
    cached_tokens_ += planned.cached_tokens;
    inflight_.first_token(bookings_[number]);
  } else {
    result_.gaps.add(now_us_ - answer.last_us);
  }
  answer.last_us = now_us_;
  inflight_.grow(bookings_[number], 1);
  if (++answer.output_tokens < trace_.requests[number].output_tokens) return;
  replica.scheduler->finish(planned.sequence);
  inflight_.free(bookings_[number]);
  answer.completed = true;
  ++replica.use.requests;
  ended();
}

void World::read_gauges() {
  FleetSample sample{.time_us = now_us_,
                     .replicas = static_cast<int>(serving_.size()),
                     .prompt_tokens = prompt_tokens_,
                     .cached_tokens = cached_tokens_};
  fleet_.update([&](Member& member) {
    const SchedulerStats stats = replicas_[member.id].scheduler->stats();
    EndpointState& state = member.state;
    state.observed_us = now_us_;
    state.waiting = stats.waiting;
    state.running = stats.running;
    state.kv_usage = static_cast<double>(stats.blocks_used) / stats.blocks_total;
    state.block_size = options_.scheduler.block_size;
    state.num_blocks = stats.blocks_total;
    return true;
  });
  for (const Replica& replica : replicas_) {
    if (!replica.scheduler) continue;
    const SchedulerStats stats = replica.scheduler->stats();
    sample.running += stats.running;
    sample.waiting += stats.waiting;
  }
  result_.samples.push_back(sample);
  if (now_us_ - expired_us_ < kExpireUs) return;
  expired_us_ = now_us_;
  policy_.expire(now_us_);
}

void World::ended() {
  if (++ended_ % kProgressEvery == 0) progress_(ended_, trace_.requests.size());
}

}  // namespace

Result<SimulationResult> simulate(const SimulationOptions& options, const Trace& trace,
                                  const std::function<void(std::size_t, std::size_t)>& progress) {
  CHECK(!trace.requests.empty() && options.metrics_interval_us > 0);
  const Policy* policy = find_policy(options.policy);
  if (!policy) return invalid("policy", "there is no policy {:?}", options.policy);
  PolicyOptions policy_options = options.policy_options;
  policy_options.max_tree_size = std::max<std::int64_t>(1, policy_options.max_tree_size / kTextScale);
  TRY(Pipeline pipeline, Pipeline::make(policy->pipeline(policy_options)));
  return World(options, trace, std::move(pipeline), progress).run();
}

}  // namespace octavo::fleet
