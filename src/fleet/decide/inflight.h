// Load in flight: requests that were sent to an endpoint and have not ended. Metrics show this load too late.
// Includes the requests that peers report.
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
  // prompt tokens to compute before the first output token, without cached tokens
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;  // prompt and output tokens
  // part of context_tokens that the endpoint had not cached; so common prefixes count once
  std::int64_t own_tokens = 0;

  Load& operator+=(const Load& more);
  bool operator==(const Load&) const = default;
};

// Load of one request at its endpoint. The owner must pass it to Inflight::free().
struct Booking {
  EndpointId endpoint = kNoEndpoint;
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;
  std::int64_t own_tokens = 0;
  std::uint64_t number = 0;  // unique among the owner's bookings
  Progress progress = {};    // for Pace
};

// Random number that identifies another process with requests to the same endpoints.
using PeerId = std::uint64_t;

class Inflight {
 public:
  // new_tokens: prompt tokens that the endpoint has not cached.
  Booking book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens);
  void first_token(Booking& booking);                    // the prompt is computed
  void grow(Booking& booking, std::int64_t new_tokens);  // the endpoint has sent new_tokens output tokens
  void free(Booking& booking);

  void peer_has(PeerId peer, EndpointId endpoint, const Load& load);
  void forget_peer(PeerId peer);
  // Drops the load of an endpoint that has left the fleet.
  void forget(EndpointId endpoint);

  Load load(EndpointId endpoint) const;  // load of this process and all peers
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
  Loads of_peers_;  // sums over peers_
};

// Load in flight that a peer reports.
struct WorkerLoad {
  std::string worker = {};  // name of the endpoint
  Load load = {};

  bool operator==(const WorkerLoad&) const = default;
};

struct LoadMessage {
  PeerId sender = 0;
  bool all = false;  // the message contains the sender's whole load: its load at other workers is 0
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
