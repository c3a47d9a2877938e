// Load in flight: the requests that were sent to each endpoint and have not ended, also those of peer
// routers. Policies need it because metrics show new requests too late.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fleet/decide/pace.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Load {
  int requests = 0;
  // prompt tokens that the endpoint still has to compute, for requests without a first output token
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;  // prompt and output tokens
  // context_tokens without the tokens that were cached at booking, so that shared prefixes count once
  std::int64_t own_tokens = 0;

  Load& operator+=(const Load& more);
  bool operator==(const Load&) const = default;
};

// The load of one request at its endpoint. The owner must pass it to Inflight::free().
struct Booking {
  EndpointId endpoint = kNoEndpoint;
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;
  std::int64_t own_tokens = 0;
  std::uint64_t number = 0;  // assigned by Balancer; unique among its bookings
  Progress progress = {};
};

// Random number that identifies a peer router.
using PeerId = std::uint64_t;

class Inflight {
 public:
  // `new_tokens` is the number of prompt tokens that the endpoint has not cached.
  Booking book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens);
  void first_token(Booking& booking);  // must be called when the first output token arrives
  // must be called when new_tokens output tokens arrive
  void grow(Booking& booking, std::int64_t new_tokens);
  void free(Booking& booking);

  void peer_has(PeerId peer, EndpointId endpoint, const Load& load);
  void forget_peer(PeerId peer);
  // Must be called when the endpoint has left the fleet. Drops its load.
  void forget(EndpointId endpoint);

  Load load(EndpointId endpoint) const;
  Load own(EndpointId endpoint) const { return at(loads_, endpoint); }
  Load of_peers(EndpointId endpoint) const { return at(of_peers_, endpoint); }

 private:
  using Loads = std::vector<Load>;  // [EndpointId]

  static Load at(const Loads& loads, EndpointId endpoint) {
    return endpoint < loads.size() ? loads[endpoint] : Load{};
  }
  static Load& grown_at(Loads& loads, EndpointId endpoint);
  void sum_peers(EndpointId endpoint);

  Loads loads_;
  std::map<PeerId, Loads> peers_;
  Loads of_peers_;
};

struct WorkerLoad {
  std::string worker = {};
  Load load = {};

  bool operator==(const WorkerLoad&) const = default;
};

struct LoadMessage {
  PeerId sender = 0;
  bool all = false;  // `workers` is complete: the sender has no load at endpoints that are not in the list
  std::vector<WorkerLoad> workers = {};

  bool operator==(const LoadMessage&) const = default;
};

inline Load& Load::operator+=(const Load& more) {
  requests += more.requests;
  prefill_tokens += more.prefill_tokens;
  context_tokens += more.context_tokens;
  own_tokens += more.own_tokens;
  return *this;
}

inline Load Inflight::load(EndpointId endpoint) const {
  Load load = own(endpoint);
  return load += of_peers(endpoint);
}

}  // namespace octavo::fleet
