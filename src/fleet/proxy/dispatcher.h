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
  std::shared_ptr<const Endpoint> endpoint;  // null: there is none
  Booking booking;
  std::string explanation;  // JSON, where asked for
};

enum class Outcome : std::uint8_t {
  success,
  failure,  // the endpoint's fault: counts for its circuit breaker
  neither,  // the client went away, or asked for something wrong
};

class Dispatcher {
 public:
  static Result<std::unique_ptr<Dispatcher>> make(const RouterOptions& options);

  // False: as many requests as allowed are under way. Who was admitted must leave().
  bool admit();
  void leave() { --under_way_; }

  // Chooses, books, and lets the policy learn. Who was chosen must be ended().
  // part: of the request's work.
  Choice choose(const RouteRequest& request, Role part, std::span<const EndpointId> excluded, bool explain);
  void first_token(Booking& booking);
  void grow(Booking& booking, std::int64_t tokens);
  void ended(Booking& booking, Outcome outcome);

  // Does any endpoint, available or not, serve this model? Nobody knows where there is none.
  bool knows(std::string_view model) const;

  Result<EndpointId> add(Endpoint endpoint);
  // The worker is so many data-parallel ranks behind one port, each an endpoint. id: of the first.
  void set_ranks(EndpointId id, int ranks);
  // Priority and weight of the one with this name are those now.
  void rank(const Endpoint& now);
  // No new requests from now on for the worker, with all of its ranks; those in flight end.
  bool remove(EndpointId id);
  void probed(EndpointId id, bool success);
  // What the endpoint's metrics say of it now.
  void observed(EndpointId id, const std::function<bool(EndpointState&)>& read);
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

  Dispatcher(const RouterOptions& options, std::vector<Pool> pools);
  Pool& pool(Role part);
  void leave_out(Cycle& cycle, std::span<const EndpointId> excluded);
  void publish_availability(EndpointId id, std::int64_t now_us);
  Result<EndpointId> add_locked(Endpoint endpoint);
  void remove_locked(EndpointId id);
  void forget(EndpointId id);
  CachePosition* position_of(const Member& member);
  void release_if_idle(EndpointId id);
  void load_changed(EndpointId id);

  struct Slot {
    std::unique_ptr<EndpointHealth> health;  // null: no endpoint
    bool removed = false;                    // gone from the fleet, its last requests under way
    bool load_changed = false;               // since it was told
    std::int64_t since_us = 0;               // that it has been well, breakers aside
  };

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
  std::int64_t expired_us_ = 0;
  bool ranked_ = false;  // some have priorities or weights
};

}  // namespace octavo::fleet
