// Collects the requests that arrive within a short window, so that place_burst() (decide/burst.h) can place
// them together. Processor calls the gate.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/decide/burst.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Thread-safe. Must outlive the AsyncClient that owns `loop`.
class BurstGate {
 public:
  // Called with the endpoint for the request. kNoEndpoint: any endpoint.
  using Then = std::function<void(EndpointId home)>;

  // `balancer` must have a burst() plugin, and must outlive the gate.
  BurstGate(Balancer& balancer, http::ClientLoop& loop) : balancer_(balancer), loop_(loop) {}

  // Adds a request to the open window. Calls `then` once: on the loop's thread when the window ends, or at
  // once with kNoEndpoint if the window is full.
  void join(const RouteRequest& request, const Subset& subset, Then then);

 private:
  void seal();

  Balancer& balancer_;
  http::ClientLoop& loop_;
  std::mutex mutex_;  // guards all members below, which describe the open window
  std::vector<std::vector<PrefixKey>> prompts_;
  std::vector<Then> thens_;
  // candidate endpoints of the first request in the window that has a prompt
  std::vector<BurstEndpoint> endpoints_;
};

}  // namespace octavo::fleet
