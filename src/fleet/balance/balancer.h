// Chooses the endpoint of each request in `octavo route`, `octavo pick` and the simulator. The balancer owns
// the fleet, its health, the policies and the load in flight.
// Safe from any thread. Decisions are made one after another, so that each one sees the load of earlier ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "fleet/balance/choice.h"
#include "fleet/decide/burst.h"
#include "fleet/decide/pipeline.h"
#include "fleet/decide/saturation.h"
#include "fleet/health/endpoint_health.h"
#include "fleet/health/places.h"
#include "fleet/index/held_dump.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

// A policy, and the role of the endpoints among which it chooses.
struct PoolOptions {
  Role part = Role::both;
  std::string policy = {};  // name of the policy, shown in explanations
  PipelineConfig pipeline = {};
};

void log_availability(const Endpoint& endpoint, Availability now);

struct BalancerOptions {
  std::vector<PoolOptions> pools = {};  // one pool for both roles, or a prefill pool and a decode pool
  ProbeOptions probes = {};
  BreakerOptions breaker = {};
  std::int64_t slow_start_us = 0;  // time after which a new endpoint gets its full share of requests
  bool learn_places = false;       // learn the maximum number of requests of an endpoint from its refusals
  std::function<std::int64_t()> clock = now_us;
  std::uint64_t seed = secret_seed();
  // Called when an endpoint has left the fleet and has no running request. Must not call the balancer.
  std::function<void(const Endpoint&)> released = [](const Endpoint&) {};
  std::function<void(const Endpoint&, Availability)> availability_changed = log_availability;
};

struct Scrape {
  EndpointId endpoint = kNoEndpoint;
  // name of the endpoint that was read, because its id may have a new owner; "": no check
  std::string name = {};
  // whether the endpoint answered, as a health probe; nullopt: another server answered
  std::optional<bool> answered = {};
  std::optional<EndpointState> state = {};  // the new state, except availability
  Attributes attributes = {};               // new values of attributes; others stay
};

class Balancer {
 public:
  // Errors: invalid configuration of a pipeline.
  static Result<std::unique_ptr<Balancer>> make(BalancerOptions options);

  // Chooses an endpoint, books the request, and reports it to the policy. The caller must pass every booking
  // to ended().
  std::expected<Choice, Refusal> choose(const RouteRequest& request, const ChoiceOptions& options);
  // Makes the same decision without booking. Returns the number of prompt tokens that the best endpoint would
  // have to compute.
  std::optional<std::int64_t> new_tokens(const RouteRequest& request, const ChoiceOptions& options);
  // Calls `troubled` for each trouble of the endpoint until ended(). `troubled` must not call the balancer.
  // silence_us: for endpoints that report no load: time without bytes after which the request counts as lost;
  // 0: never.
  void watch(const Booking& booking, std::function<void(Trouble)> troubled, std::int64_t silence_us = 0);
  void first_token(Booking& booking);
  void grow(Booking& booking, std::int64_t tokens);
  void ended(Booking& booking, Outcome outcome);
  // Reports the latencies of an answer in ms; negative: unknown. Call it before ended(). inputs:
  // Choice::inputs.
  void took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms, double tpot_ms);
  // Reports that a request failed at this endpoint and succeeded at another one.
  void failed(const Endpoint& endpoint);
  void pause(const Endpoint& endpoint, std::int64_t seconds);
  // Reports that the endpoint refused a request for lack of capacity (429, 503). Call it before ended().
  // seconds: Retry-After.
  void refused(const Booking& booking, std::optional<std::int64_t> seconds);
  // Returns the number of requests that the available endpoints can accept now, if learn_places is true.
  // Places::kUnknown: no endpoint is available, or one of them has never refused a request.
  int room() const;

  // Returns whether an endpoint, available or not, serves this model; true if there are no endpoints.
  bool knows(std::string_view model) const;
  // Returns the request headers that the policies read, see scan_request().
  std::span<const std::string> headers() const { return pools_.back().pipeline.headers(); }
  // Returns the agent session of the request; "" if it has none.
  std::string_view agent(const RouteRequest& request) const;
  // Null: no plugin places bursts.
  const BurstPrefixProducer* burst() const { return pools_.back().pipeline.burst(); }
  std::vector<BurstEndpoint> burst_endpoints(const RouteRequest& request, const Subset& subset) const;
  double saturation(const SaturationDetector& detector) const;
  // Returns the URL of a random available endpoint; "" if none is available.
  std::string any_url();
  // random bits that clients cannot predict
  std::uint64_t draw() { return random_bits(options_.seed, 0, ++draws_); }

  Result<EndpointId> add(Endpoint endpoint);
  // Adds an endpoint, or replaces the description of one that add() or put() has added. Labels that the new
  // description does not name stay, since an administrator may have set them. Endpoints from discovery do not
  // change.
  Result<EndpointId> put(Endpoint endpoint);
  // Replaces the endpoints of a source. Models and adapters that were read from an endpoint stay, unless the
  // list has others.
  void set_endpoints(std::vector<Endpoint> endpoints, const std::string& source = {});
  // Replaces an endpoint by its data-parallel ranks: one endpoint for each rank, at the same port.
  void set_ranks(EndpointId id, const Endpoint& endpoint, int ranks);
  // Sets the models and adapters of the endpoint. nullopt: its models do not change.
  void set_models(const Member& member, std::optional<std::vector<std::string>> models,
                  std::vector<std::string> adapters);
  // Stops new requests to the endpoint and to other ranks of its port. Running requests continue.
  bool remove(EndpointId id);
  // Returns the removed endpoints that still have watched requests.
  std::vector<Member> leaving() const;

  void probed(EndpointId id, const Endpoint& endpoint, bool success);
  // Applies readings. Returns the endpoints that have restarted: their caches are empty, and the requests of
  // the old process are lost.
  std::vector<EndpointId> scraped(std::vector<Scrape> scrapes);
  // ends the pauses of circuit breakers, and drops expired prefixes; call it several times a second
  void tick();

  // Applies an endpoint's cache events up to `position`. Returns false if the endpoint has left the fleet.
  bool cache_changed(const Member& member, std::span<const CacheEvent> events, const CachePosition& position);
  void caches_reset();
  std::vector<IndexedPrefixes> indexed_prefixes() const;
  // Returns the blocks that an endpoint has reported; nullopt if it has reported none.
  std::optional<HeldDump> held(std::string_view endpoint);
  // Applies another router's dump. Returns false if the dump does not fit.
  bool restore(const Member& member, const HeldDump& dump);

  // Sets a callback for changes of the load in flight. The balancer calls it at most once between two calls
  // of changed_loads(). The callback must not call the balancer.
  void watch_loads(std::function<void()> changed);
  // Returns this process's load in flight at the endpoints where it has changed since the last call. all: at
  // all endpoints.
  std::vector<WorkerLoad> changed_loads(bool all);
  void peer_told(const LoadMessage& message);
  void peer_gone(PeerId peer);

  const Fleet& fleet() const { return fleet_; }
  Fleet& fleet() { return fleet_; }
  std::shared_ptr<const FleetView> view() const { return fleet_.view(); }
  Load load(EndpointId id) const;  // excludes the load of peers
  Load load_of_peers(EndpointId id) const;
  CircuitBreaker::State breaker(EndpointId id) const;

 private:
  struct Pool {
    Role part;
    std::string policy;
    Pipeline pipeline;
  };
  struct Watch {
    std::function<void(Trouble)> troubled;
    std::int64_t since_us = 0;
    std::int64_t heard_us = 0;    // time at which the request was sent, or its last bytes arrived
    std::int64_t silence_us = 0;  // see watch()
    int idle_reads = 0;           // consecutive readings since heard_us without running requests
    bool answered = false;
  };
  struct Slot {
    std::unique_ptr<EndpointHealth> health = {};  // null: the slot is free
    std::shared_ptr<const Endpoint> endpoint = {};
    std::string source = {};                      // see set_endpoints()
    std::map<std::uint64_t, Watch> watches = {};  // by Booking::number
    Places places = {};
    bool removed = false;       // not in the fleet any more, but requests are running
    bool load_changed = false;  // has changed since the last changed_loads()
    std::int64_t since_us = 0;  // time at which the endpoint became available
  };

  // Caches have a separate mutex, which also guards changes of the policies' indexes: decisions need not wait
  // for it.
  struct Caches {
    std::mutex mutex = {};                      // locked after mutex_
    std::vector<CachePosition> positions = {};  // [EndpointId]
    // endpoints whose block size differs from that of the index
    std::set<std::string> other_block_sizes = {};
  };

  Balancer(BalancerOptions options, std::vector<Pool> pools);
  Pool& pool(Role part) { return *std::ranges::find(pools_, part, &Pool::part); }
  void find_candidates(const FleetView& view, const RouteRequest& request, const ChoiceOptions& options,
                       std::span<const EndpointId> excluded, Candidates& found) const;
  std::optional<Refusal> rank(Pool& from, Cycle& cycle, const ChoiceOptions& options);
  bool rank_named(const Cycle& cycle, const ChoiceOptions& options);
  void leave_out(Cycle& cycle, std::span<const EndpointId> excluded);
  void leave_out_paused(const Cycle& cycle);
  void leave_out_full(const Cycle& cycle);
  Choice book(const Cycle& cycle, const ChoiceOptions& options);
  void add_helpers(Pool& from, Cycle& cycle, const ChoiceOptions& options, Choice& choice);
  std::string prefiller(Pool& from, Cycle& cycle, const ChoiceOptions& options, EndpointId answering);
  std::string encoders(Pool& from, Cycle& cycle, const ChoiceOptions& options);

  Slot* slot(EndpointId id, const Endpoint& endpoint);
  Result<EndpointId> add_locked(Endpoint endpoint, const std::string& source);
  void set_ranks_locked(EndpointId id, const Endpoint& endpoint, int ranks);
  void update_listed(const Member& known, Endpoint listed);
  void describe(EndpointId id, Endpoint endpoint);
  void remove_ranks(const FleetView& view, const Member& removed);
  void remove_locked(EndpointId id);
  void forget(EndpointId id);
  void release_if_idle(EndpointId id);
  void publish_availability(EndpointId id, std::int64_t now_us);
  void count_silence(std::int64_t now);
  void count_idle(const Scrape& scrape);
  bool take(Scrape& scrape, Member& member, std::vector<EndpointId>& restarted);
  void restart(Member& member, const EndpointState& now);
  void take_availability(Member& member, Availability now);
  void tell_watches(Slot& slot, Trouble trouble);
  CachePosition* position_of(const Member& member);
  void check_block_size(const Member& member, std::span<const CacheEvent> events);
  void load_changed(EndpointId id);

  const BalancerOptions options_;
  Fleet fleet_;
  std::atomic<std::uint64_t> draws_ = 0;
  Caches caches_;
  mutable std::mutex mutex_;              // guards all members below
  std::vector<Pool> pools_;
  Inflight inflight_;
  Pace pace_;
  std::vector<Slot> slots_;                             // [EndpointId]
  std::map<std::string, EndpointId, std::less<>> ids_;  // ids by endpoint name
  std::function<void()> loads_changed_;
  bool loads_are_told_ = true;        // changed_loads() has returned all changes
  Decision decision_;                 // temporary data
  Candidates found_;                  // temporary data
  std::vector<EndpointId> left_out_;  // temporary data
  std::uint64_t choices_ = 0;
  std::int64_t expired_us_ = 0;
  std::int64_t paused_until_us_ = 0;  // end of the latest pause of any endpoint
  bool ranked_ = false;               // an endpoint has a priority or weight
};

}  // namespace octavo::fleet
