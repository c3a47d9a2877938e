// Gathers the requests of a moment, so that they are placed together (see decide/burst.h), with a clock.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/decide/burst.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Must outlive the client whose loop it runs on. Safe from any thread.
class BurstGate {
 public:
  // Receives the endpoint of the request; kNoEndpoint: any.
  using Then = std::function<void(EndpointId home)>;

  // `balancer` has burst() and outlives the gate.
  BurstGate(Balancer& balancer, http::ClientLoop& loop) : balancer_(balancer), loop_(loop) {}

  // `then` is called once, at the end of the window that is open now, on the loop's thread; at once where the
  // window is full.
  void join(const RouteRequest& request, const Subset& subset, Then then);

 private:
  void seal();

  Balancer& balancer_;
  http::ClientLoop& loop_;
  std::mutex mutex_;  // of all below: the open window
  std::vector<std::vector<PrefixKey>> prompts_;
  std::vector<Then> thens_;               // as long
  std::vector<BurstEndpoint> endpoints_;  // of the first request with a prompt
};

}  // namespace octavo::fleet
