// Load in flight: requests that were sent to each endpoint and have not ended. Metrics do not show this load
// yet. Includes the requests of this process and those that peers report.
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
  std::int64_t prefill_tokens = 0;  // tokens to compute before the first output tokens: prompts without their
                                    // cached parts
  std::int64_t context_tokens = 0;  // tokens of prompts and their outputs
  std::int64_t own_tokens = 0;      // part of context_tokens that the endpoint did not have cached, so common
                                    // prefixes count once

  Load& operator+=(const Load& more);
  bool operator==(const Load&) const = default;
};

// One request's share of its endpoint's load. The owner must pass it to Inflight::free().
struct Booking {
  EndpointId endpoint = kNoEndpoint;
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;
  std::int64_t own_tokens = 0;
  std::uint64_t number = 0;  // unique number among the owner's bookings
  Progress progress = {};    // for Pace
};

// A random number that identifies another process which sends requests to the same endpoints.
using PeerId = std::uint64_t;

class Inflight {
 public:
  // new_tokens: number of prompt tokens that the endpoint does not have cached.
  Booking book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens);
  void first_token(Booking& booking);                    // the endpoint has computed the prompt
  void grow(Booking& booking, std::int64_t new_tokens);  // the endpoint has sent more output tokens
  void free(Booking& booking);

  void peer_has(PeerId peer, EndpointId endpoint, const Load& load);
  void forget_peer(PeerId peer);
  // Drops all load of an endpoint that has left the fleet.
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

// Load in flight that another process reports.
struct WorkerLoad {
  std::string worker = {};  // name of the endpoint
  Load load = {};

  bool operator==(const WorkerLoad&) const = default;
};

struct LoadMessage {
  PeerId sender = 0;
  bool all = false;  // the message has all load of the sender: its load at other workers is 0
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
