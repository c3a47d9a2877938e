// Chooses the endpoint of each request for `octavo route`, `octavo pick` and the simulator. The balancer owns
// the fleet, its health, the policies and the load in flight. Safe from any thread. Decisions are serial, so
// that each one sees the load of the earlier ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

// Endpoints that do the same part of the work, and the policy that chooses among them.
struct PoolOptions {
  Role part = Role::both;
  std::string policy = {};  // its name, for explanations
  PipelineConfig pipeline = {};
};

void log_availability(const Endpoint& endpoint, Availability now);

struct BalancerOptions {
  std::vector<PoolOptions> pools = {};  // one for both parts, or one for prefill and one for decode
  ProbeOptions probes = {};
  BreakerOptions breaker = {};
  std::int64_t slow_start_us = 0;  // until a new endpoint has its full share
  bool learn_places = false;       // learn an endpoint's request limit from its refusals
  std::function<std::int64_t()> clock = now_us;
  std::uint64_t seed = secret_seed();
  // An endpoint has left the fleet and its last request has ended. Must not call back.
  std::function<void(const Endpoint&)> released = [](const Endpoint&) {};
  std::function<void(const Endpoint&, Availability)> availability_changed = log_availability;
};

// One reading of an endpoint's metrics.
struct Scrape {
  EndpointId endpoint = kNoEndpoint;
  std::string name = {};  // of the endpoint read: its id may belong to another one now; "" skips the check
  std::optional<bool> answered = {};        // counts as a probe; unset if another server was read
  std::optional<EndpointState> state = {};  // its availability is ignored
  Attributes attributes = {};               // replace those of the same names
};

class Balancer {
 public:
  // Errors: a pipeline that cannot be made.
  static Result<std::unique_ptr<Balancer>> make(BalancerOptions options);

  // Chooses, books, and lets the policy learn. Every booking must be ended().
  std::expected<Choice, Refusal> choose(const RouteRequest& request, const ChoiceOptions& options);
  // The same decision without effect: tokens of the prompt that the best endpoint would have to compute.
  std::optional<std::int64_t> new_tokens(const RouteRequest& request, const ChoiceOptions& options);
  // Calls `troubled` for each trouble of the endpoint until the booking has ended. It must not call back.
  // silence_us: of an endpoint that reports no load, after which the request counts as lost; 0: never.
  void watch(const Booking& booking, std::function<void(Trouble)> troubled, std::int64_t silence_us = 0);
  void first_token(Booking& booking);
  void grow(Booking& booking, std::int64_t tokens);
  void ended(Booking& booking, Outcome outcome);
  // The latencies of an answer in ms, negative where unknown; before ended(). inputs: as chosen with.
  void took(const Booking& booking, const LatencyInputs& inputs, double ttft_ms, double tpot_ms);
  // A request that failed here was answered by another endpoint.
  void failed(const Endpoint& endpoint);
  // The endpoint has sent Retry-After.
  void pause(const Endpoint& endpoint, std::int64_t seconds);
  // The endpoint has no capacity for a request (429, 503); before ended(). seconds: its Retry-After.
  void refused(const Booking& booking, std::optional<std::int64_t> seconds);
  // Requests that the available endpoints can take now, with learn_places. Places::kUnknown if one of
  // them has never refused a request, or none is available.
  int room() const;

  // Whether an endpoint, available or not, serves this model. True while no endpoint exists.
  bool knows(std::string_view model) const;
  // Headers that the policies read, see scan_request().
  std::span<const std::string> headers() const { return pools_.back().pipeline.headers(); }
  // The agent's session of the request, or "".
  std::string_view agent(const RouteRequest& request) const;
  // Null if no plugin places bursts.
  const BurstPrefixProducer* burst() const { return pools_.back().pipeline.burst(); }
  std::vector<BurstEndpoint> burst_endpoints(const RouteRequest& request, const Subset& subset) const;
  double saturation(const SaturationDetector& detector) const;
  // URL of a random available endpoint, or "".
  std::string any_url();
  std::uint64_t draw() { return random_bits(options_.seed, 0, ++draws_); }  // unpredictable random bits

  Result<EndpointId> add(Endpoint endpoint);
  // Adds the endpoint, or describes anew one that add() or put() added before. One of a list stays as it is.
  Result<EndpointId> put(Endpoint endpoint);
  // Replaces the endpoints of a source. Discovered models and adapters stay if the list names none.
  void set_endpoints(std::vector<Endpoint> endpoints, const std::string& source = {});
  // Makes an endpoint of each data-parallel rank at the endpoint's port.
  void set_ranks(EndpointId id, const Endpoint& endpoint, int ranks);
  // The models and adapters that the endpoint serves; unset fields do not change.
  void set_models(const Member& member, std::optional<std::vector<std::string>> models,
                  std::vector<std::string> adapters);
  // No new requests for the endpoint and the other ranks of its port; requests in flight end.
  bool remove(EndpointId id);
  // Removed endpoints with watched requests.
  std::vector<Member> leaving() const;

  void probed(EndpointId id, const Endpoint& endpoint, bool success);
  // Returns the endpoints whose process is new: their caches are empty, and requests that the old process had
  // are lost.
  std::vector<EndpointId> scraped(std::vector<Scrape> scrapes);
  void tick();  // several times a second: breakers become half-open, old prefixes expire

  // The endpoint's cache events, up to `position`. False: it has left the fleet.
  bool cache_changed(const Member& member, std::span<const CacheEvent> events, const CachePosition& position);
  void caches_reset();
  std::vector<IndexedPrefixes> indexed_prefixes() const;  // of the policies' producers
  // The blocks that an endpoint has reported, if any.
  std::optional<HeldDump> held(std::string_view endpoint);
  // Takes over a dump from another router. False: it is of no use.
  bool restore(const Member& member, const HeldDump& dump);

  // Calls `changed` when the load in flight has changed, once for each changed_loads(). It must not call
  // back.
  void watch_loads(std::function<void()> changed);
  // Own load in flight where it has changed since the last call; all of it with `all`.
  std::vector<WorkerLoad> changed_loads(bool all);
  void peer_told(const LoadMessage& message);
  void peer_gone(PeerId peer);

  const Fleet& fleet() const { return fleet_; }
  Fleet& fleet() { return fleet_; }
  std::shared_ptr<const FleetView> view() const { return fleet_.view(); }
  Load load(EndpointId id) const;  // without peers
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
    std::int64_t heard_us = 0;    // when it was sent, or its last bytes came
    std::int64_t silence_us = 0;  // see watch()
    int idle_reads = 0;           // consecutive readings of the metrics since heard_us that show no request
    bool answered = false;
  };
  struct Slot {
    std::unique_ptr<EndpointHealth> health = {};  // null if the slot is free
    std::shared_ptr<const Endpoint> endpoint = {};
    std::string source = {};                      // see set_endpoints()
    std::map<std::uint64_t, Watch> watches = {};  // by the booking's number
    Places places = {};
    bool removed = false;       // from the fleet, with requests in flight
    bool load_changed = false;  // since changed_loads()
    std::int64_t since_us = 0;  // when it became available
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
  void load_changed(EndpointId id);

  const BalancerOptions options_;
  Fleet fleet_;
  std::atomic<std::uint64_t> draws_ = 0;
  std::mutex caches_;  // of the indexes, while they change, so that decisions need not wait; after mutex_
  std::vector<CachePosition> positions_;  // [EndpointId], of caches_
  mutable std::mutex mutex_;              // of all below
  std::vector<Pool> pools_;
  Inflight inflight_;
  std::vector<Slot> slots_;                             // [EndpointId]
  std::map<std::string, EndpointId, std::less<>> ids_;  // by name, of endpoints in the fleet
  std::function<void()> loads_changed_;
  bool loads_are_told_ = true;        // nothing has changed since changed_loads()
  Decision decision_;                 // scratch
  Candidates found_;                  // scratch
  std::vector<EndpointId> left_out_;  // scratch
  std::uint64_t choices_ = 0;
  std::int64_t expired_us_ = 0;
  std::int64_t paused_until_us_ = 0;  // the latest pause of any endpoint
  bool ranked_ = false;               // some endpoint has a priority or weight
};

}  // namespace octavo::fleet
