// Balancer chooses the endpoint of each request for `octavo route`, `octavo pick` and the simulator. It
// owns the fleet, the endpoints' health, the policies and the load in flight.
// Thread-safe. Decisions are serialised, so that each decision sees the load of all earlier decisions.
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
#include "fleet/health/learned_capacity.h"
#include "fleet/index/held_dump.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

struct PoolOptions {
  Role part = Role::both;
  std::string policy = {};
  PipelineConfig pipeline = {};
};

void log_availability(const Endpoint& endpoint, Availability now);

struct BalancerOptions {
  std::vector<PoolOptions> pools = {};  // one pool for both roles, or a prefill pool and a decode pool
  ProbeOptions probes = {};
  BreakerOptions breaker = {};
  // time after which a new endpoint gets its full share of requests
  std::int64_t slow_start_us = 0;
  bool learn_capacity = false;     // learn from refusals how many requests an endpoint accepts
  std::function<std::int64_t()> clock = now_us;
  std::uint64_t seed = secret_seed();
  // Called when an endpoint has left the fleet and its last request has ended. Must not call the balancer.
  std::function<void(const Endpoint&)> released = [](const Endpoint&) {};
  std::function<void(const Endpoint&, Availability)> availability_changed = log_availability;
};

struct Scrape {
  EndpointId endpoint = kNoEndpoint;
  // expected name of the endpoint, because a new endpoint may have reused its id; "": no check
  std::string name = {};
  // whether the health probe succeeded; nullopt: a different server answered the probe
  std::optional<bool> answered = {};
  std::optional<EndpointState> state = {};  // new state; its availability is ignored
  Attributes attributes = {};               // new values of attributes; all other attributes stay
};

class Balancer {
 public:
  static Result<std::unique_ptr<Balancer>> make(BalancerOptions options);

  // Chooses an endpoint, adds the request to its load, and reports the choice to the policy. The caller
  // must pass every booking to ended().
  std::expected<Choice, Refusal> choose(const RouteRequest& request, const ChoiceOptions& options);
  // Makes the same decision as choose(), without a booking. Returns the number of prompt tokens that the
  // chosen endpoint would have to compute.
  std::optional<std::int64_t> new_tokens(const RouteRequest& request, const ChoiceOptions& options);
  // Calls `troubled` for each problem of the endpoint, until ended(). `troubled` must not call the balancer.
  // If the endpoint reports no load, the request counts as lost after `silence_us` without a byte (0: never).
  void watch(const Booking& booking, std::function<void(Trouble)> troubled, std::int64_t silence_us = 0);
  void first_token(Booking& booking);
  void grow(Booking& booking, std::int64_t tokens);
  void ended(Booking& booking, Outcome outcome);
  // Reports the latencies of an answer in ms (negative: unknown). Must be called before ended(). `inputs`
  // is Choice::inputs.
  void took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms, double tpot_ms);
  // Reports that a request failed at this endpoint but succeeded at a different endpoint.
  void failed(const Endpoint& endpoint);
  void pause(const Endpoint& endpoint, std::int64_t seconds);
  // Reports that no more requests with this routing key will come.
  void finished(std::string_view routing_key);
  // Reports that the endpoint refused a request because it has no capacity (429 or 503). Must be called
  // before ended(). `seconds` is the response's Retry-After.
  void refused(const Booking& booking, std::optional<std::int64_t> seconds);
  // Returns how many more requests the available endpoints accept now, if learn_capacity is set. Returns
  // LearnedCapacity::kUnknown if no endpoint is available, or if an available endpoint has refused no
  // request.
  int room() const;

  // Returns whether any endpoint serves this model, even if it is not available. Returns true if the fleet
  // has no endpoints.
  bool knows(std::string_view model) const;
  // Returns the names of the request headers that the policies read.
  std::span<const std::string> headers() const { return pools_.back().pipeline.headers(); }
  // Returns the id of the request's agent session. Returns "" if the request belongs to none.
  std::string_view agent(const RouteRequest& request) const;
  // Returns null if the policy has no plugin that places bursts of requests.
  const BurstPrefixProducer* burst() const { return pools_.back().pipeline.burst(); }
  std::vector<BurstEndpoint> burst_endpoints(const RouteRequest& request, const Subset& subset) const;
  double saturation(const SaturationDetector& detector) const;
  // Returns the number of endpoints whose metrics are too old for the detector. Returns 0 if the detector
  // reads no metrics.
  int stale_endpoints(const SaturationDetector& detector) const;
  // Returns "" if no endpoint is available.
  std::string any_url();
  // Returns random bits that clients cannot predict.
  std::uint64_t draw() { return random_bits(options_.seed, 0, ++draws_); }

  Result<EndpointId> add(Endpoint endpoint);
  // Adds an endpoint, or replaces the description of an endpoint that add() or put() has added. Keeps
  // labels that the new description does not contain, because an administrator may have set them. Does not
  // change endpoints from discovery.
  Result<EndpointId> put(Endpoint endpoint);
  // Replaces all endpoints that came from `source`. Keeps models and adapters that were read from an
  // endpoint, unless the new list contains different ones.
  void set_endpoints(std::vector<Endpoint> endpoints, const std::string& source = {});
  // Replaces an endpoint by one endpoint for each data-parallel rank, all at the same port.
  void set_ranks(EndpointId id, const Endpoint& endpoint, int ranks);
  // Sets the models and adapters of the endpoint. If `models` is nullopt, only the adapters change.
  void set_models(const Member& member, std::optional<std::vector<std::string>> models,
                  std::vector<std::string> adapters);
  // Stops new requests to the endpoint and to all other ranks at its port. Running requests continue.
  bool remove(EndpointId id);
  std::vector<Member> leaving() const;

  void probed(EndpointId id, const Endpoint& endpoint, bool success);
  // Applies readings. Returns the endpoints that have restarted: their caches are empty, and requests that
  // they ran before are lost.
  std::vector<EndpointId> scraped(std::vector<Scrape> scrapes);
  // Updates the availability of endpoints after pauses and timeouts, and drops expired prefixes. Must be
  // called several times a second.
  void tick();

  // Applies the endpoint's KV cache events up to `position`. Returns false if the endpoint has left the
  // fleet.
  bool cache_changed(const Member& member, std::span<const CacheEvent> events, const CachePosition& position);
  void caches_reset();
  std::vector<IndexedPrefixes> indexed_prefixes() const;
  // Returns nullopt if the endpoint has reported no blocks.
  std::optional<HeldDump> held(std::string_view endpoint);
  // Applies a dump of a peer router. Returns false if the dump does not match the index.
  bool restore(const Member& member, const HeldDump& dump);

  // Sets a callback for changes of the load in flight. It is called at most once between two calls of
  // changed_loads(), and must not call the balancer.
  void watch_loads(std::function<void()> changed);
  // Returns this process's load in flight at each endpoint where the load has changed since the last call,
  // or at all endpoints if `all` is set.
  std::vector<WorkerLoad> changed_loads(bool all);
  void peer_reported(const LoadMessage& message);
  void peer_removed(PeerId peer);

  const Fleet& fleet() const { return fleet_; }
  Fleet& fleet() { return fleet_; }
  std::shared_ptr<const FleetView> view() const { return fleet_.view(); }
  Load load(EndpointId id) const;
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
    std::int64_t active_us = 0;   // time at which the request was sent or its last bytes arrived
    std::int64_t silence_us = 0;  // see watch()
    int idle_reads = 0;           // consecutive readings since active_us that show no running requests
    bool answered = false;
  };
  struct Slot {
    std::unique_ptr<EndpointHealth> health = {};  // null: the slot is free
    std::shared_ptr<const Endpoint> endpoint = {};
    std::string source = {};
    std::map<std::uint64_t, Watch> watches = {};  // by Booking::number
    LearnedCapacity capacity = {};
    bool removed = false;  // the endpoint has left the fleet, but requests are running
    bool load_changed = false;
    std::int64_t since_us = 0;  // time at which the endpoint became available
  };

  // The KV cache indexes have a separate mutex, so that decisions do not wait for cache events. The mutex
  // guards writes to the policies' indexes, too.
  struct Caches {
    std::mutex mutex = {};                      // if both mutexes are needed, mutex_ must be locked first
    std::vector<CachePosition> positions = {};  // [EndpointId]
    // names of endpoints whose block size differs from the index's
    std::set<std::string> other_block_sizes = {};
  };

  Balancer(BalancerOptions options, std::vector<Pool> pools);
  Pool& pool(Role part) { return *std::ranges::find(pools_, part, &Pool::part); }
  void find_candidates(const FleetView& view, const RouteRequest& request, const ChoiceOptions& options,
                       std::span<const EndpointId> excluded, Candidates& found) const;
  std::optional<Refusal> rank(Pool& from, Cycle& cycle, const ChoiceOptions& options);
  bool rank_named(Pool& from, Cycle& cycle, const ChoiceOptions& options);
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
  void notify_watches(Slot& slot, Trouble trouble);
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
  std::map<std::string, EndpointId, std::less<>> ids_;
  std::function<void()> loads_changed_;
  bool loads_are_reported_ = true;    // changed_loads() has returned all changes
  Decision decision_;                 // used only during choose()
  Candidates found_;                  // used only during choose()
  std::vector<EndpointId> left_out_;  // used only during choose()
  std::uint64_t choices_ = 0;
  std::int64_t expired_us_ = 0;
  std::int64_t paused_until_us_ = 0;  // latest end of a pause of any endpoint
  bool ranked_ = false;               // an endpoint has a priority or weight other than the default
};

}  // namespace octavo::fleet
