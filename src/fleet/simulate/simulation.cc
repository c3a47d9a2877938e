#include "fleet/simulate/simulation.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <queue>
#include <utility>

#include "base/check.h"
#include "base/quoted_text.h"
#include "fleet/balance/balancer.h"
#include "fleet/simulate/replica_meter.h"
#include "kv/events.h"
#include "schedule/scheduler.h"

namespace octavo::fleet {
namespace {

constexpr TokenId kAnswerToken = 0;
constexpr std::size_t kProgressEvery = 256;
constexpr std::size_t kReadAhead = 4;                        // sequences of a step
constexpr std::size_t kEventsAtOnce = std::size_t{1} << 40;  // all
constexpr auto kNoEvent = std::numeric_limits<std::int64_t>::max();
constexpr auto kStep = std::numeric_limits<std::size_t>::max();

void prefetch(const void* data, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(static_cast<const char*>(data) + i);
}

// Replicas that do the same part of the work.
struct Pool {
  Role part;
  SchedulerOptions scheduler;
  StepTiming timing;
};

using Handed = std::pair<std::size_t, PrefixHold*>;  // a request's prompt

struct Replica {
  Role role = Role::both;
  std::unique_ptr<KvEventLog> events;    // null: it tells none
  std::unique_ptr<Scheduler> scheduler;  // null: gone, its id is free
  std::int64_t started_us = 0;
  StepPlan step = {};  // that runs
  bool busy = false;
  bool draining = false;  // takes no requests any more
  // Requests whose prompts were computed elsewhere, and whose KV waits for free blocks here.
  std::deque<std::size_t> no_room = {};
  // Those whose KV has come or is coming, until their first token.
  std::vector<Handed> handed = {};
  int transfers = 0;              // that are on their way here
  std::int64_t link_free_us = 0;  // when the last of them is over
  ReplicaUse use = {};
  ReplicaMeter meter = {};  // where someone reads it
};

class World {
 public:
  // pools: one, or those that compute prompts and those that decode.
  World(const SimulationOptions& options, const Trace& trace, std::vector<Pool> pools,
        const std::function<void(std::size_t, std::size_t)>& progress)
      : options_(options), trace_(trace), pools_(std::move(pools)), progress_(progress) {}

  // policies: one for each pool.
  Result<SimulationResult> run(std::vector<PoolOptions> policies);

 private:
  // The end of the step that a replica runs (kStep), or of the transfer of a request's KV to it.
  struct Event {
    std::int64_t time_us;
    EndpointId replica;
    std::size_t request;
    auto operator<=>(const Event&) const = default;
  };

  std::int64_t next_change_us() const;
  Result<> change_fleet();
  Result<> read_replicas();
  Result<> resize(int replicas);
  Pool& pool(Role part) { return *std::ranges::find(pools_, part, &Pool::part); }
  Pool& decoding() { return pools_.back(); }
  Result<EndpointId> add_replica(const Pool& pool);
  void drain(EndpointId id);
  void retire(EndpointId id);
  void arrive(std::size_t number);
  void describe(const TraceRequest& request);
  ChoiceOptions choice_options(std::size_t number, Role part) const;
  EndpointId choose(std::size_t number, Role part);
  void give_back(std::size_t number) { balancer_->ended(bookings_[number], Outcome::neither); }
  bool stays_together(std::size_t number);
  bool add_sequence(std::size_t number, EndpointId id, int output_tokens);
  void prefilled(std::size_t number, const PlannedSequence& planned, Replica& replica);
  void begin_transfers(EndpointId id);
  void let_go(Replica& replica, std::size_t number);
  void end_transfer(std::size_t number, EndpointId id);
  void begin_step(EndpointId id);
  void end_step(EndpointId id);
  void push(const Event& event);
  Event pop();
  void read_ahead() const;
  void tell_events(EndpointId id);
  void token(std::size_t number, const PlannedSequence& planned, Replica& replica);
  void plan_followers();
  void read_gauges();
  void ended(std::size_t number);

  const SimulationOptions& options_;
  const Trace& trace_;
  std::vector<Pool> pools_;
  const std::function<void(std::size_t, std::size_t)>& progress_;

  std::int64_t now_us_ = 0;
  std::unique_ptr<Balancer> balancer_;
  std::vector<Replica> replicas_;    // [EndpointId]
  std::vector<EndpointId> serving_;  // that take requests, in the order of their starts
  std::int64_t starts_ = 0;
  std::size_t resized_ = 0;             // of options_.sizes
  std::int64_t reading_us_ = kNoEvent;  // when the scaling loop reads next
  std::deque<std::int64_t> starting_;   // when replicas were decided on that do not take requests yet
  std::vector<Booking> bookings_;       // [request]
  std::vector<Event> events_;           // a heap, the next one first
  // A user who thinks until the next request.
  struct Thought {
    std::int64_t until_us;
    std::uint32_t request;
    auto operator<=>(const Thought&) const = default;
  };
  std::priority_queue<Thought, std::vector<Thought>, std::greater<>> thoughts_;
  std::vector<std::uint32_t> follower_;  // [request] of a closed trace
  std::vector<bool> apart_;              // [request] its prompt was computed apart
  std::size_t ended_ = 0;
  std::int64_t prompt_tokens_ = 0;  // see FleetSample
  std::int64_t cached_tokens_ = 0;
  SimulationResult result_;

  RouteRequest route_;                    // scratch
  std::vector<TokenId> prompt_;           // scratch
  std::vector<CacheEvent> told_;          // scratch
  std::vector<ReplicaReading> readings_;  // scratch
};

Result<SimulationResult> World::run(std::vector<PoolOptions> policies) {
  const auto& requests = trace_.requests;
  const std::int64_t began_us = now_us_ = trace_.closed ? 0 : requests.front().arrival_us;
  TRY(balancer_, Balancer::make({.pools = std::move(policies),
                                 .clock = [this] { return now_us_; },
                                 .seed = options_.seed,
                                 .availability_changed = [](const Endpoint&, Availability) {}}));
  bookings_.resize(requests.size());
  apart_.resize(requests.size());
  result_.answers.resize(requests.size());
  if (trace_.closed) plan_followers();
  for (int i = 0; i < options_.prefill.replicas; ++i) TRY_VOID(add_replica(pools_.front()));
  TRY_VOID(resize(options_.replicas));
  for (Replica& replica : replicas_) replica.started_us = now_us_;
  std::int64_t gauges_us = now_us_;
  if (options_.scaling.replicas) reading_us_ = now_us_ + options_.scaling.interval_us;
  std::size_t arrived = trace_.closed ? requests.size() : 0;
  while (ended_ < requests.size()) {
    const std::int64_t thought_us = thoughts_.empty() ? kNoEvent : thoughts_.top().until_us;
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
      CHECK(event_us != kNoEvent, "{} requests never end", requests.size() - ended_);
      const Event event = pop();
      now_us_ = event_us;
      event.request == kStep ? end_step(event.replica) : end_transfer(event.request, event.replica);
    } else {
      now_us_ = arrival_us;
      const std::size_t number = trace_.closed ? thoughts_.top().request : arrived++;
      if (trace_.closed) thoughts_.pop();
      arrive(number);
    }
  }
  read_gauges();
  result_.duration_us = now_us_ - began_us;
  for (EndpointId id = 0; id < replicas_.size(); ++id)
    if (replicas_[id].scheduler) retire(id);
  for (const std::int64_t decided_us : starting_)
    result_.replicas.push_back({.there_us = now_us_ - decided_us});
  return std::move(result_);
}

std::int64_t World::next_change_us() const {
  const std::int64_t size_us = resized_ < options_.sizes.size() ? options_.sizes[resized_].time_us : kNoEvent;
  const std::int64_t ready_us = starting_.empty() ? kNoEvent : starting_.front() + options_.startup_us;
  return std::min({size_us, ready_us, reading_us_});
}

// One of the changes that are due; those that have started come before anyone decides on more.
Result<> World::change_fleet() {
  if (!starting_.empty() && starting_.front() + options_.startup_us <= now_us_) {
    starting_.pop_front();
    return resize(static_cast<int>(serving_.size()) + 1);
  }
  if (reading_us_ <= now_us_) return read_replicas();
  return resize(options_.sizes[resized_++].replicas);
}

Result<> World::read_replicas() {
  reading_us_ += options_.scaling.interval_us;
  readings_.clear();
  for (const EndpointId id : serving_) {
    const SchedulerStats stats = replicas_[id].scheduler->stats();
    readings_.push_back(replicas_[id].meter.read(options_.scaling.share, stats.running, stats.waiting));
  }
  const int wanted = options_.scaling.replicas(now_us_, readings_);
  CHECK(wanted >= 1);
  int there = static_cast<int>(serving_.size() + starting_.size());
  for (; there < wanted; ++there) starting_.push_back(now_us_);
  for (; there > wanted && !starting_.empty(); --there) {
    result_.replicas.push_back({.there_us = now_us_ - starting_.back()});
    starting_.pop_back();
  }
  return there > wanted ? resize(wanted) : Result<>();
}

Result<> World::resize(int replicas) {
  const auto count = static_cast<std::size_t>(replicas);
  while (serving_.size() < count) {
    TRY(const EndpointId id, add_replica(decoding()));
    serving_.push_back(id);
  }
  while (serving_.size() > count) {
    drain(serving_.back());
    serving_.pop_back();
  }
  return {};
}

Result<EndpointId> World::add_replica(const Pool& pool) {
  TRY(auto scheduler, Scheduler::create(pool.scheduler));
  std::unique_ptr<KvEventLog> events;
  if (options_.kv_events) {
    events = std::make_unique<KvEventLog>(pool.scheduler.num_blocks, pool.scheduler.block_size);
    scheduler->tell(*events);
  }
  const std::string name = fmt::format("replica-{}:8000", starts_++);
  TRY(const EndpointId id, balancer_->add({.name = name, .url = "http://" + name, .role = pool.part}));
  balancer_->probed(id, *balancer_->view()->find(id)->endpoint, true);
  if (id == replicas_.size()) replicas_.emplace_back();
  replicas_[id] = {.role = pool.part,
                   .events = std::move(events),
                   .scheduler = std::move(scheduler),
                   .started_us = now_us_ - options_.startup_us,
                   .use = {.prefills = pool.part == Role::prefill}};
  return id;
}

void World::drain(EndpointId id) {
  CHECK(balancer_->remove(id));
  replicas_[id].draining = true;
  if (!replicas_[id].busy) retire(id);
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
  describe(request);
  const bool apart = pools_.size() == 2 && !stays_together(number);
  const EndpointId id = choose(number, apart ? Role::prefill : decoding().part);
  if (id == kNoEndpoint) return ended(number);
  if (add_sequence(number, id, apart ? 1 : request.output_tokens)) return;
  give_back(number);
  ended(number);
}

// As policies and schedulers see it: prompt_ and route_.
void World::describe(const TraceRequest& request) {
  write_tokens(trace_, request, prompt_);
  write_text(trace_, request, route_.text);
  route_.tokens.assign(prompt_.begin(), prompt_.end());
  route_.tokens_are_exact = true;
  route_.output_tokens_max = request.output_tokens;
}

ChoiceOptions World::choice_options(std::size_t number, Role part) const {
  return {.part = part, .draw = random_bits(options_.seed, number, part == Role::decode)};
}

// Into bookings_. The request's prompt is in route_.
EndpointId World::choose(std::size_t number, Role part) {
  auto choice = balancer_->choose(route_, choice_options(number, part));
  if (!choice) return kNoEndpoint;
  bookings_[number] = choice->booking;
  return choice->booking.endpoint;
}

// Whether so little of the prompt is to be computed that the replica that decodes does it.
bool World::stays_together(std::size_t number) {
  if (options_.prefill.local_tokens_max == 0) return false;
  const std::int64_t prompt_tokens = trace_.requests[number].input_tokens;
  return balancer_->new_tokens(route_, choice_options(number, Role::decode)).value_or(prompt_tokens) <=
         options_.prefill.local_tokens_max;
}

// The prompt in prompt_ goes to a replica. False: it is refused there.
bool World::add_sequence(std::size_t number, EndpointId id, int output_tokens) {
  const int total = trace_.requests[number].input_tokens + output_tokens;
  if (!replicas_[id].scheduler->add({.prompt = prompt_, .max_total_tokens = total, .tag = number}))
    return false;
  if (!replicas_[id].busy) begin_step(id);
  return true;
}

// A prompt is computed in a pool of its own: who decodes takes it over.
void World::prefilled(std::size_t number, const PlannedSequence& planned, Replica& replica) {
  const TraceRequest& request = trace_.requests[number];
  replica.scheduler->finish(planned.sequence);
  give_back(number);
  apart_[number] = true;
  prompt_tokens_ += request.input_tokens;
  cached_tokens_ += planned.cached_tokens;
  describe(request);
  const EndpointId id = choose(number, Role::decode);
  if (id == kNoEndpoint) return ended(number);
  if (!replicas_[id].scheduler->fits(prompt_.size(), request.input_tokens + request.output_tokens)) {
    give_back(number);
    return ended(number);
  }
  balancer_->first_token(bookings_[number]);
  replicas_[id].no_room.push_back(number);
  begin_transfers(id);
}

// Of those who wait for it, as far as there are blocks to take them.
void World::begin_transfers(EndpointId id) {
  Replica& replica = replicas_[id];
  const int block_size = decoding().scheduler.block_size;
  while (!replica.no_room.empty()) {
    const std::size_t number = replica.no_room.front();
    const TraceRequest& request = trace_.requests[number];
    write_tokens(trace_, request, prompt_);
    const int blocks = request.input_tokens / block_size;
    PrefixHold* hold = replica.scheduler->hold(prompt_, {}, blocks);
    // Where nothing ends that would give blocks back, the prompt is computed once more.
    if (!hold && (replica.busy || replica.transfers > 0)) return;
    replica.no_room.pop_front();
    ++replica.transfers;
    const double tokens = hold ? static_cast<double>(blocks - hold->cached) * block_size : 0;
    if (hold) replica.handed.emplace_back(number, hold);
    const PrefillPool& link = options_.prefill;
    replica.link_free_us =
        std::max(now_us_, replica.link_free_us) +
        static_cast<std::int64_t>(tokens * link.kv_bytes_per_token / link.link_bytes_per_second * 1e6);
    push({replica.link_free_us + link.link_latency_us, id, number});
  }
}

void World::end_transfer(std::size_t number, EndpointId id) {
  Replica& replica = replicas_[id];
  --replica.transfers;
  const auto handed = std::ranges::find(replica.handed, number, &Handed::first);
  if (handed != replica.handed.end())
    replica.scheduler->publish(*handed->second, static_cast<int>(handed->second->keys.size()));
  write_tokens(trace_, trace_.requests[number], prompt_);
  if (add_sequence(number, id, trace_.requests[number].output_tokens)) return;
  let_go(replica, number);
  give_back(number);
  ended(number);
  begin_transfers(id);
}

// What was taken over for a request is the cache's from now on.
void World::let_go(Replica& replica, std::size_t number) {
  const auto handed = std::ranges::find(replica.handed, number, &Handed::first);
  if (handed == replica.handed.end()) return;
  replica.scheduler->let_go(handed->second);
  replica.handed.erase(handed);
}

void World::begin_step(EndpointId id) {
  Replica& replica = replicas_[id];
  replica.scheduler->plan(replica.step);
  // Prompts that were taken over may leave no room for any answer: the newest may have to be computed again.
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
  const std::int64_t duration_us = pool(replica.role).timing.microseconds(work);
  replica.use.busy_us += duration_us;
  ++replica.use.steps;
  push({now_us_ + duration_us, id, kStep});
}

void World::end_step(EndpointId id) {
  Replica& replica = replicas_[id];
  replica.scheduler->collect(replica.step.step);
  for (const PlannedSequence& planned : replica.step.sequences)
    if (planned.samples) token(planned.tag, planned, replica);
  if (replica.events && !replica.draining) tell_events(id);
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

// Of many replicas nothing stays in the processor's caches from one step to the next: what the next ones
// touch is fetched while this one is computed. The next events are near the front of the heap; further behind
// stands what the fetches that follow have to read.
void World::read_ahead() const {
  const auto each = [this](std::size_t first, auto&& bring) {
    for (std::size_t i = first; i < std::min(2 * first + 1, events_.size()); ++i)
      if (events_[i].request == kStep) bring(replicas_[events_[i].replica]);
  };
  each(7, [](const Replica& replica) { prefetch(&replica, sizeof replica); });
  each(3, [](const Replica& replica) {
    prefetch(replica.scheduler.get(), sizeof(Scheduler));
    prefetch(replica.step.sequences.data(), kReadAhead * sizeof(PlannedSequence));
  });
  each(1, [](const Replica& replica) {
    const std::span planned(replica.step.sequences);
    for (const PlannedSequence& one : planned.first(std::min(kReadAhead, planned.size())))
      if (const Sequence* sequence = replica.scheduler->find(one.sequence))
        prefetch(sequence, sizeof *sequence);
  });
}

void World::tell_events(EndpointId id) {
  KvEventLog& log = *replicas_[id].events;
  log.flush();
  told_.clear();
  log.take(kEventsAtOnce, [&](const KvEvent& event, std::span<const TokenId> tokens) {
    if (event.kind == KvEvent::Kind::cleared) {
      told_.push_back({.kind = CacheEvent::Kind::cleared});
      return;
    }
    const bool stored = event.kind == KvEvent::Kind::stored;
    CacheEvent& told =
        told_.emplace_back(CacheEvent{.kind = stored ? CacheEvent::Kind::stored : CacheEvent::Kind::removed,
                                      .group = event.group,
                                      .blocks = {event.key.low}});
    if (!stored) return;
    if (event.parent_key != Hash128{}) told.parent = event.parent_key.low;
    told.tokens.assign(tokens.begin(), tokens.end());
    told.block_size = pool(replicas_[id].role).scheduler.block_size;
  });
  if (!told_.empty()) balancer_->cache_changed(*balancer_->view()->find(id), told_, {});
}

// A request has its next token.
void World::token(std::size_t number, const PlannedSequence& planned, Replica& replica) {
  traffic::AnswerTimes& answer = result_.answers[number];
  replica.scheduler->commit(planned.sequence, kAnswerToken);
  if (replica.role == Role::prefill) return prefilled(number, planned, replica);
  const bool read = reading_us_ != kNoEvent;
  if (read) replica.meter.token();
  if (answer.output_tokens == 0) {
    answer.first_us = now_us_;
    if (read) replica.meter.first_token(answer);
    if (!apart_[number]) {
      prompt_tokens_ += answer.input_tokens;
      cached_tokens_ += planned.cached_tokens;
    } else {
      let_go(replica, number);
    }
    balancer_->first_token(bookings_[number]);
  } else {
    result_.gaps.add(now_us_ - answer.last_us);
  }
  answer.last_us = now_us_;
  balancer_->grow(bookings_[number], 1);
  if (++answer.output_tokens < trace_.requests[number].output_tokens) return;
  replica.scheduler->finish(planned.sequence);
  give_back(number);
  answer.completed = true;
  ++replica.use.requests;
  if (read) replica.meter.finished(answer);
  ended(number);
}

void World::read_gauges() {
  FleetSample sample{.time_us = now_us_,
                     .replicas = static_cast<int>(balancer_->view()->members.size()),
                     .prompt_tokens = prompt_tokens_,
                     .cached_tokens = cached_tokens_};
  balancer_->fleet().update([&](Member& member) {
    const SchedulerStats stats = replicas_[member.id].scheduler->stats();
    EndpointState& state = member.state;
    state.observed_us = now_us_;
    state.waiting = stats.waiting;
    state.running = stats.running;
    state.kv_usage = static_cast<double>(stats.blocks_used) / stats.blocks_total;
    state.block_size = pool(replicas_[member.id].role).scheduler.block_size;
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
  balancer_->tick();
}

void World::plan_followers() {
  const auto& requests = trace_.requests;
  follower_.assign(requests.size(), kNoRequest);
  for (std::uint32_t i = 0; i < requests.size(); ++i)
    requests[i].follows == kNoRequest ? thoughts_.push({requests[i].arrival_us, i})
                                      : void(follower_[requests[i].follows] = i);
}

// A request has its answer, or is refused: who has asked thinks about the next one.
void World::ended(std::size_t number) {
  if (trace_.closed && follower_[number] != kNoRequest)
    thoughts_.push({now_us_ + trace_.requests[follower_[number]].arrival_us, follower_[number]});
  if (++ended_ % kProgressEvery == 0) progress_(ended_, trace_.requests.size());
}

// The policy that was given, or the one of this name.
Result<PoolOptions> make_policy(const SimulationOptions& options, Role part, const std::string& name) {
  if (options.pipeline) return PoolOptions{part, name, *options.pipeline};
  const Policy* policy = find_policy(name);
  if (!policy) return invalid("policy", "there is no policy {}", quoted_text(name));
  PolicyOptions policy_options = options.policy_options;
  policy_options.max_tree_size = std::max<std::int64_t>(1, policy_options.max_tree_size / kTextScale);
  return PoolOptions{part, name, policy->pipeline(policy_options)};
}

}  // namespace

Result<SimulationResult> simulate(const SimulationOptions& options, const Trace& trace,
                                  const std::function<void(std::size_t, std::size_t)>& progress) {
  CHECK(!trace.requests.empty() && options.metrics_interval_us > 0);
  std::vector<Pool> pools;
  std::vector<PoolOptions> policies;
  const PrefillPool& prefill = options.prefill;
  if (prefill.replicas > 0) {
    CHECK(options.sizes.empty());
    if (!options.scheduler.enable_prefix_caching)
      return invalid("enable-prefix-caching", "must be on where prompts are computed apart");
    TRY(PoolOptions policy, make_policy(options, Role::prefill, prefill.policy));
    policies.push_back(std::move(policy));
    pools.push_back({Role::prefill, prefill.scheduler, prefill.timing});
  }
  const Role part = prefill.replicas > 0 ? Role::decode : Role::both;
  TRY(PoolOptions policy, make_policy(options, part, options.policy));
  policies.push_back(std::move(policy));
  pools.push_back({part, options.scheduler, options.timing});
  return World(options, trace, std::move(pools), progress).run(std::move(policies));
}

}  // namespace octavo::fleet
