// Requests sent to each endpoint and not ended: load that no metric shows yet. Counts the requests of this
// process and those that peers report.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Load {
  int requests = 0;
  std::int64_t prefill_tokens = 0;  // to be computed before first tokens come: prompts less what is cached
  std::int64_t context_tokens = 0;  // prompts, and what was answered to them
  std::int64_t own_tokens = 0;      // of these what the endpoint did not hold: what is shared counts once

  Load& operator+=(const Load& more);
  bool operator==(const Load&) const = default;
};

// One request's share of its endpoint's load. The owner releases the share with Inflight::free().
struct Booking {
  EndpointId endpoint = kNoEndpoint;
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;
  std::int64_t own_tokens = 0;
  std::uint64_t number = 0;  // of all bookings of its owner
};

// Another process that sends requests to the same endpoints: a number that it has drawn for itself.
using PeerId = std::uint64_t;

class Inflight {
 public:
  // new_tokens: those of the prompt that the endpoint does not hold.
  Booking book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens);
  void first_token(Booking& booking);                    // the prompt is computed
  void grow(Booking& booking, std::int64_t new_tokens);  // more of the answer is there
  void free(Booking& booking);

  // Replaces the peer's load at the endpoint.
  void peer_has(PeerId peer, EndpointId endpoint, const Load& load);
  void forget_peer(PeerId peer);
  // Drops all load of an endpoint that has left.
  void forget(EndpointId endpoint);

  Load load(EndpointId endpoint) const;  // of all together
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

// Requests in flight that another process reports.
struct WorkerLoad {
  std::string worker = {};  // Endpoint::name
  Load load = {};

  bool operator==(const WorkerLoad&) const = default;
};

struct LoadMessage {
  PeerId sender = 0;
  bool all = false;  // the sender has nothing in flight elsewhere
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
