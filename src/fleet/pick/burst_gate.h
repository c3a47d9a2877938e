// Collects requests that arrive at almost the same time, so that they are placed together (see
// decide/burst.h). It has a clock.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/decide/burst.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Must outlive the client of its loop. Safe from any thread.
class BurstGate {
 public:
  // Receives the endpoint for the request; kNoEndpoint: any endpoint.
  using Then = std::function<void(EndpointId home)>;

  // `balancer` must have a burst() and outlive the gate.
  BurstGate(Balancer& balancer, http::ClientLoop& loop) : balancer_(balancer), loop_(loop) {}

  // Adds a request to the open window. `then` is called once on the loop's thread when the window ends, which
  // is at once if the window is full.
  void join(const RouteRequest& request, const Subset& subset, Then then);

 private:
  void seal();

  Balancer& balancer_;
  http::ClientLoop& loop_;
  std::mutex mutex_;  // guards all members below, which describe the open window
  std::vector<std::vector<PrefixKey>> prompts_;
  std::vector<Then> thens_;               // one for each request
  std::vector<BurstEndpoint> endpoints_;  // endpoints for the first request that has a prompt
};

}  // namespace octavo::fleet
