// The state of simulate(): the fleet and its requests in virtual time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/simulate/replica_meter.h"
#include "fleet/simulate/simulation.h"
#include "kv/events.h"
#include "schedule/scheduler.h"

namespace octavo::fleet {

inline constexpr auto kNoEvent = std::numeric_limits<std::int64_t>::max();

struct SimulatedPool {
  Role part;
  SchedulerOptions scheduler;
  StepTiming timing;
};

// a request, and its prompt's blocks at the replica that received them
using Handed = std::pair<std::size_t, PrefixHold*>;

struct SimulatedReplica {
  Role role = Role::both;
  std::unique_ptr<KvEventLog> events;    // null: the replica reports no events
  std::unique_ptr<Scheduler> scheduler;  // null: the replica was removed
  std::int64_t started_us = 0;
  StepPlan step = {};
  bool busy = false;
  bool draining = false;  // accepts no new requests
  double slowdown = 1;    // factor of the step times
  // Requests whose prompts a prefill replica has computed, and that wait until this replica has free
  // blocks.
  std::deque<std::size_t> no_room = {};
  // Requests whose KV blocks have arrived or are being transferred, until their first token.
  std::vector<Handed> handed = {};
  int transfers = 0;
  std::int64_t link_free_us = 0;  // end of the last transfer
  ReplicaUse use = {};
  ReplicaMeter meter = {};  // used by a scaling loop
};

class World {
 public:
  // `pools` has one pool for both roles, or a prefill pool and a decode pool.
  World(const SimulationOptions& options, const Trace& trace, std::vector<SimulatedPool> pools,
        const std::function<void(std::size_t, std::size_t)>& progress)
      : options_(options), trace_(trace), pools_(std::move(pools)), progress_(progress) {}

  // `policies` has one policy for each pool.
  Result<SimulationResult> run(std::vector<PoolOptions> policies);

 private:
  // The end of a replica's step (request is kStep), or the end of the transfer of a request's KV blocks.
  struct Event {
    std::int64_t time_us;
    EndpointId replica;
    std::size_t request;
    auto operator<=>(const Event&) const = default;
  };

  struct Thought {
    std::int64_t until_us;
    std::uint32_t request;
    auto operator<=>(const Thought&) const = default;
  };
  struct Requests {
    std::vector<Booking> bookings = {};  // [request]
    std::vector<bool> apart = {};        // [request] true: a prefill replica has computed the prompt
    std::priority_queue<Thought, std::vector<Thought>, std::greater<>> thoughts = {};
    // [request] index of the user's next request, if the trace is closed
    std::vector<std::uint32_t> follower = {};
    std::size_t ended = 0;
  };
  struct Scratch {
    RouteRequest route = {};
    std::vector<TokenId> prompt = {};
    std::vector<CacheEvent> reported = {};
    std::vector<ReplicaReading> readings = {};
  };

  std::int64_t next_change_us() const;
  Result<> change_fleet();
  Result<> read_replicas();
  Result<> resize(int replicas);
  SimulatedPool& pool(Role part) { return *std::ranges::find(pools_, part, &SimulatedPool::part); }
  SimulatedPool& decoding() { return pools_.back(); }
  Result<EndpointId> add_replica(const SimulatedPool& pool);
  void drain(EndpointId id);
  void retire(EndpointId id);
  void arrive(std::size_t number);
  void describe(const TraceRequest& request);
  ChoiceOptions choice_options(std::size_t number, Role part) const;
  EndpointId choose(std::size_t number, Role part);
  void give_back(std::size_t number) { balancer_->ended(requests_.bookings[number], Outcome::neither); }
  bool stays_together(std::size_t number);
  bool add_sequence(std::size_t number, EndpointId id, int output_tokens);
  void prefilled(std::size_t number, const PlannedSequence& planned, SimulatedReplica& replica);
  void begin_transfers(EndpointId id);
  void let_go(SimulatedReplica& replica, std::size_t number);
  void end_transfer(std::size_t number, EndpointId id);
  void begin_step(EndpointId id);
  void end_step(EndpointId id);
  void push(const Event& event);
  Event pop();
  void read_ahead() const;
  void report_events(EndpointId id);
  void token(std::size_t number, const PlannedSequence& planned, SimulatedReplica& replica);
  void plan_followers();
  void read_gauges();
  void ended(std::size_t number);

  const SimulationOptions& options_;
  const Trace& trace_;
  std::vector<SimulatedPool> pools_;
  const std::function<void(std::size_t, std::size_t)>& progress_;

  std::int64_t now_us_ = 0;
  std::unique_ptr<Balancer> balancer_;
  std::vector<SimulatedReplica> replicas_;  // [EndpointId]
  std::vector<EndpointId> serving_;         // replicas that accept requests, in the order of their starts
  std::int64_t starts_ = 0;
  std::size_t resized_ = 0;
  std::int64_t reading_us_ = kNoEvent;
  std::deque<std::int64_t> starting_;  // decision times of the replicas that are starting
  std::vector<Event> events_;          // heap with the next event in front
  Requests requests_;
  std::int64_t prompt_tokens_ = 0;  // see FleetSample
  std::int64_t cached_tokens_ = 0;
  SimulationResult result_;
  Scratch scratch_;
};

}  // namespace octavo::fleet
