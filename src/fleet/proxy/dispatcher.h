// Who gets a request, and what came of it: the fleet, its health, the policy and what is in flight, together.
// Safe from any thread; decisions are taken one after the other, so that each sees the ones before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleet/decide/pipeline.h"
#include "fleet/health/endpoint_health.h"
#include "fleet/index/held_dump.h"
#include "fleet/peers/load_message.h"
#include "fleet/proxy/route_metrics.h"
#include "fleet/proxy/router_options.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

struct Choice {
  std::shared_ptr<const Endpoint> endpoint = {};  // null: there is none
  Booking booking = {};
  std::uint64_t number = 0;      // of all choices
  std::string explanation = {};  // JSON, where asked for
};

// What a request wants of its worker, beside what it says itself.
struct Wish {
  Role part = Role::both;                      // of the request's work
  std::span<const EndpointId> excluded = {};
  bool rested = false;          // no worker that has asked for a pause (Retry-After)
  bool computed = false;        // another worker has computed the prompt
  std::string_view worker = {};  // the worker's name, followed while it is available; "": any
  bool explain = false;
};

enum class Outcome : std::uint8_t {
  success,
  failure,  // the endpoint's fault: counts for its circuit breaker
  neither,  // the client went away, or the request was at fault, or nobody knows
};

// Why a request at a worker is not to be waited for any longer.
enum class Trouble : std::uint8_t {
  unhealthy,  // the worker's probes fail
  forgotten,  // its metrics say that it has nothing to do, while the request waits for its first byte
  stalled,    // the same for longer, after the first byte
  restarted,  // its process is another one than the request was sent to
};

class Dispatcher {
 public:
  static Result<std::unique_ptr<Dispatcher>> make(const RouterOptions& options);

  // False: as many requests as allowed are under way. Who was admitted must leave().
  bool admit();
  void leave() { --under_way_; }

  // Chooses, books, and lets the policy learn. Who was chosen must be ended().
  Choice choose(const RouteRequest& request, const Wish& wish);
  // `troubled` is called for each trouble of the chosen worker until the choice has ended. It must not call
  // back.
  void watch(const Choice& choice, std::function<void(Trouble)> troubled);
  void first_token(Choice& choice);
  void grow(Choice& choice, std::int64_t tokens);
  void ended(Choice& choice, Outcome outcome);
  // A failure of an earlier request, which another worker has answered.
  void failed(const Endpoint& endpoint);
  // The worker has too much to do for so long, by its own word.
  void pause(const Endpoint& endpoint, std::int64_t seconds);

  // Does any endpoint, available or not, serve this model? Nobody knows where there is none.
  bool knows(std::string_view model) const;

  Result<EndpointId> add(Endpoint endpoint);
  // The number of data-parallel ranks behind the worker's port, each an endpoint. id and endpoint: of the first.
  void set_ranks(EndpointId id, const Endpoint& endpoint, int ranks);
  // Priority and weight of the one with this name are those now.
  void rank(const Endpoint& now);
  // No new requests from now on for the worker, with all of its ranks; those in flight end.
  bool remove(EndpointId id);
  void probed(EndpointId id, const Endpoint& endpoint, bool success);
  // The worker's metrics have been read: it has requests, or it has none.
  void observed(EndpointId id, const Endpoint& endpoint, bool busy);
  // The worker has begun anew: it holds nothing, and no request that was sent before alive_us, when its old
  // process still answered.
  void restarted(EndpointId id, const Endpoint& endpoint, std::int64_t alive_us);
  // The worker's caches have been emptied from outside.
  void caches_reset();
  // Removed workers that still have requests.
  std::vector<Member> leaving() const;
  // The endpoint tells what came into its prefix cache and what went. One that is gone by now is not heard.
  // position: behind these events.
  void cache_changed(const Member& member, std::span<const CacheEvent> events, const CachePosition& position);
  // What an endpoint has told that it holds, for another router; nothing: it is unknown, or has told nothing.
  std::optional<HeldDump> held(std::string_view endpoint);
  // What another router was told. False: it cannot be used.
  bool restore(const Member& member, const HeldDump& dump);
  // `changed` is called when what is in flight has changed, once for each changed_loads(). It must not call
  // back.
  void watch_loads(std::function<void()> changed);
  // What this router has in flight, where that has changed since the last call; wherever there is anything
  // where `all`.
  std::vector<WorkerLoad> changed_loads(bool all);
  // What another router has in flight counts like this one's, until it is gone.
  void peer_told(const LoadMessage& message);
  void peer_gone(PeerId peer);
  void tick();  // often: breakers half-open, old prefixes expire

  std::uint64_t draw() { return random_bits(seed_, 0, ++draws_); }  // bits that nobody can guess

  Fleet& fleet() { return fleet_; }
  RouteMetrics& metrics() { return metrics_; }
  const RouterOptions& options() const { return options_; }
  Load load(EndpointId id) const;           // of this router's requests
  Load load_of_peers(EndpointId id) const;  // of the other routers'
  CircuitBreaker::State breaker(EndpointId id) const;

 private:
  // Endpoints that do the same part of the work, and how one of them is chosen.
  struct Pool {
    Role part;
    std::string policy;
    Pipeline pipeline;
  };

  struct Watch {
    std::function<void(Trouble)> troubled;
    std::int64_t since_us = 0;
    int idle_reads = 0;     // of the worker's metrics, in a row, since the request was sent or its last bytes
    bool answered = false;  // its first byte has come
  };
  struct Slot {
    std::unique_ptr<EndpointHealth> health;     // null: no endpoint
    std::shared_ptr<const Endpoint> endpoint;   // as it was added
    std::map<std::uint64_t, Watch> watches = {};  // by the choice's number
    bool removed = false;                    // gone from the fleet, its last requests under way
    bool load_changed = false;               // since it was told
    std::int64_t since_us = 0;               // that it has been well, breakers aside
  };

  Dispatcher(const RouterOptions& options, std::vector<Pool> pools);
  Pool& pool(Role part);
  void leave_out(Cycle& cycle, std::span<const EndpointId> excluded);
  void leave_out_paused(const Cycle& cycle);
  EndpointId best(Pool& from, Cycle& cycle, const Wish& wish);
  Slot* slot(EndpointId id, const Endpoint& endpoint);
  void tell_watches(Slot& slot, Trouble trouble);
  void publish_availability(EndpointId id, std::int64_t now_us);
  Result<EndpointId> add_locked(Endpoint endpoint);
  void remove_locked(EndpointId id);
  void forget(EndpointId id);
  CachePosition* position_of(const Member& member);
  void release_if_idle(EndpointId id);
  void load_changed(EndpointId id);

  const RouterOptions options_;
  Fleet fleet_;
  RouteMetrics metrics_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> draws_ = 0;
  std::atomic<int> under_way_ = 0;
  std::mutex caches_;  // what endpoints hold, while it changes: decisions do not wait; after mutex_
  std::vector<CachePosition> positions_;  // [EndpointId], of that
  mutable std::mutex mutex_;  // of all below
  std::vector<Pool> pools_;
  Inflight inflight_;
  std::vector<Slot> slots_;  // [EndpointId]
  std::map<std::string, EndpointId, std::less<>> ids_;  // of names in the fleet
  std::function<void()> loads_changed_;
  bool loads_are_told_ = true;  // nothing has changed since changed_loads()
  Decision decision_;
  std::vector<EndpointId> left_out_;  // of this one
  std::uint64_t choices_ = 0;
  std::int64_t expired_us_ = 0;
  bool ranked_ = false;  // some have priorities or weights
};

}  // namespace octavo::fleet
