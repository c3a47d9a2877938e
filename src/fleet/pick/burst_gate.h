// Collects requests that arrive at almost the same time, so that decide/burst.h can place them together. The
// gate has a clock.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/decide/burst.h"
#include "http/async_client.h"

namespace octavo::fleet {

// The object must outlive the AsyncClient of its loop. Thread-safe.
class BurstGate {
 public:
  // Called with the endpoint for the request; kNoEndpoint: any endpoint.
  using Then = std::function<void(EndpointId home)>;

  // balancer: must have a burst(), and must outlive the gate.
  BurstGate(Balancer& balancer, http::ClientLoop& loop) : balancer_(balancer), loop_(loop) {}

  // Adds a request to the open window. Calls `then` once: on the loop's thread at the end of the window, or
  // immediately with kNoEndpoint if the window is full.
  void join(const RouteRequest& request, const Subset& subset, Then then);

 private:
  void seal();

  Balancer& balancer_;
  http::ClientLoop& loop_;
  std::mutex mutex_;  // guards all members below, which are those of the open window
  std::vector<std::vector<PrefixKey>> prompts_;
  std::vector<Then> thens_;               // one callback for each request
  std::vector<BurstEndpoint> endpoints_;  // endpoints of the first request with a prompt
};

}  // namespace octavo::fleet
