// Chooses the endpoint of each request for `octavo route`, `octavo pick` and the simulator. The balancer owns
// the fleet, its health, the policies and the load in flight. Safe from any thread. Decisions are made one
// after another, so that each one includes the load of the earlier ones.
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

// Endpoints with the same role, and the policy that chooses one of them.
struct PoolOptions {
  Role part = Role::both;
  std::string policy = {};  // name of the policy, for explanations
  PipelineConfig pipeline = {};
};

void log_availability(const Endpoint& endpoint, Availability now);

struct BalancerOptions {
  std::vector<PoolOptions> pools = {};  // one pool for both roles, or one for prefill and one for decode
  ProbeOptions probes = {};
  BreakerOptions breaker = {};
  std::int64_t slow_start_us = 0;  // time until a new endpoint gets its full share of requests
  bool learn_places = false;       // learn an endpoint's request limit from its refusals
  std::function<std::int64_t()> clock = now_us;
  std::uint64_t seed = secret_seed();
  // Called when an endpoint has left the fleet and its last request has ended. Must not call the balancer.
  std::function<void(const Endpoint&)> released = [](const Endpoint&) {};
  std::function<void(const Endpoint&, Availability)> availability_changed = log_availability;
};

struct Scrape {
  EndpointId endpoint = kNoEndpoint;
  std::string name = {};  // name of the endpoint that was read, since another endpoint may have its id by
                          // now; "": skip this check
  std::optional<bool> answered = {};        // result of the reading as a health probe; nullopt: another
                                            // server was read
  std::optional<EndpointState> state = {};  // the new state; its availability is ignored
  Attributes attributes = {};               // attributes, which replace those of the same names
};

class Balancer {
 public:
  // Errors: a pipeline has an invalid configuration.
  static Result<std::unique_ptr<Balancer>> make(BalancerOptions options);

  // Chooses an endpoint, adds a booking, and lets the policy learn the choice. Every booking must be passed
  // to ended().
  std::expected<Choice, Refusal> choose(const RouteRequest& request, const ChoiceOptions& options);
  // The same decision without effects. Returns the number of prompt tokens that the best endpoint would have
  // to compute.
  std::optional<std::int64_t> new_tokens(const RouteRequest& request, const ChoiceOptions& options);
  // Calls `troubled` for each trouble of the endpoint until the booking has ended. It must not call the
  // balancer. silence_us: for endpoints that report no load, the time without bytes after which the request
  // counts as lost; 0: never.
  void watch(const Booking& booking, std::function<void(Trouble)> troubled, std::int64_t silence_us = 0);
  void first_token(Booking& booking);
  void grow(Booking& booking, std::int64_t tokens);
  void ended(Booking& booking, Outcome outcome);
  // Reports the latencies of an answer in ms; negative: unknown. Call it before ended(). inputs: those of the
  // choice.
  void took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms, double tpot_ms);
  // Reports that a request failed at this endpoint, and another endpoint answered it.
  void failed(const Endpoint& endpoint);
  void pause(const Endpoint& endpoint, std::int64_t seconds);
  // Reports that the endpoint has no capacity for a request (429, 503). Call it before ended(). seconds: its
  // Retry-After.
  void refused(const Booking& booking, std::optional<std::int64_t> seconds);
  // Number of requests that the available endpoints can accept now, with learn_places. Places::kUnknown: no
  // endpoint is available, or one has never refused a request.
  int room() const;

  // Whether an endpoint, available or not, serves this model. True if there are no endpoints.
  bool knows(std::string_view model) const;
  // Names of headers that the policies read, see scan_request().
  std::span<const std::string> headers() const { return pools_.back().pipeline.headers(); }
  // The agent session of the request; "": none.
  std::string_view agent(const RouteRequest& request) const;
  // Null: no plugin places bursts.
  const BurstPrefixProducer* burst() const { return pools_.back().pipeline.burst(); }
  std::vector<BurstEndpoint> burst_endpoints(const RouteRequest& request, const Subset& subset) const;
  double saturation(const SaturationDetector& detector) const;
  // URL of a random available endpoint; "": none is available.
  std::string any_url();
  std::uint64_t draw() { return random_bits(options_.seed, 0, ++draws_); }  // unpredictable random bits

  Result<EndpointId> add(Endpoint endpoint);
  // Adds the endpoint, or replaces the description of an endpoint that add() or put() has added. Endpoints
  // from a list do not change.
  Result<EndpointId> put(Endpoint endpoint);
  // Replaces the endpoints of a source. If the list has no models and adapters for an endpoint, discovered
  // ones stay.
  void set_endpoints(std::vector<Endpoint> endpoints, const std::string& source = {});
  // Replaces an endpoint by one endpoint for each data-parallel rank at its port.
  void set_ranks(EndpointId id, const Endpoint& endpoint, int ranks);
  // Sets the models and adapters that the endpoint serves. Unset arguments do not change anything.
  void set_models(const Member& member, std::optional<std::vector<std::string>> models,
                  std::vector<std::string> adapters);
  // Stops new requests to the endpoint and to the other ranks of its port. Running requests continue.
  bool remove(EndpointId id);
  // Removed endpoints that still have watched requests.
  std::vector<Member> leaving() const;

  void probed(EndpointId id, const Endpoint& endpoint, bool success);
  // Applies the readings. Returns the endpoints that have restarted: their caches are empty, and requests of
  // the old process are lost.
  std::vector<EndpointId> scraped(std::vector<Scrape> scrapes);
  void tick();  // call it several times a second: opens breakers half, and drops old prefixes

  // Applies cache events of the endpoint, up to `position`. False: the endpoint has left the fleet.
  bool cache_changed(const Member& member, std::span<const CacheEvent> events, const CachePosition& position);
  void caches_reset();
  std::vector<IndexedPrefixes> indexed_prefixes() const;  // indexes of the policies' producers
  // The blocks that an endpoint has reported; nullopt: it has reported none.
  std::optional<HeldDump> held(std::string_view endpoint);
  // Takes over a dump from another router. False: the dump cannot be used.
  bool restore(const Member& member, const HeldDump& dump);

  // Sets a callback for changes of the load in flight. It is called at most once between two calls of
  // changed_loads(), and must not call the balancer.
  void watch_loads(std::function<void()> changed);
  // Load in flight of this process that has changed since the last call. all: also the load that has not
  // changed.
  std::vector<WorkerLoad> changed_loads(bool all);
  void peer_told(const LoadMessage& message);
  void peer_gone(PeerId peer);

  const Fleet& fleet() const { return fleet_; }
  Fleet& fleet() { return fleet_; }
  std::shared_ptr<const FleetView> view() const { return fleet_.view(); }
  Load load(EndpointId id) const;  // load without that of peers
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
    std::int64_t heard_us = 0;    // time when the request was sent, or when its last bytes arrived
    std::int64_t silence_us = 0;  // see watch()
    int idle_reads = 0;           // number of consecutive readings since heard_us that show no running
                                  // request
    bool answered = false;
  };
  struct Slot {
    std::unique_ptr<EndpointHealth> health = {};  // null: the slot is free
    std::shared_ptr<const Endpoint> endpoint = {};
    std::string source = {};                      // see set_endpoints()
    std::map<std::uint64_t, Watch> watches = {};  // by number of the booking
    Places places = {};
    bool removed = false;       // removed from the fleet, but requests are running
    bool load_changed = false;  // since the last changed_loads()
    std::int64_t since_us = 0;  // when it became available
  };

  // Its mutex also guards changes of the policies' indexes, so that decisions need not wait.
  struct Caches {
    std::mutex mutex = {};                         // lock it after mutex_
    std::vector<CachePosition> positions = {};     // [EndpointId]
    std::set<std::string> other_block_sizes = {};  // names of endpoints whose blocks differ in size
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
  std::map<std::string, EndpointId, std::less<>> ids_;  // ids of the fleet's endpoints by name
  std::function<void()> loads_changed_;
  bool loads_are_told_ = true;        // whether changed_loads() has returned all changes
  Decision decision_;                 // temporary data
  Candidates found_;                  // temporary data
  std::vector<EndpointId> left_out_;  // temporary data
  std::uint64_t choices_ = 0;
  std::int64_t expired_us_ = 0;
  std::int64_t paused_until_us_ = 0;  // end of the last pause of all endpoints
  bool ranked_ = false;               // whether any endpoint has a priority or weight
};

}  // namespace octavo::fleet
