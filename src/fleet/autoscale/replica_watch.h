// Differences between two readings of the replicas' metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/observe/server_load.h"
#include "fleet/plan/autoscaler.h"

namespace octavo::fleet {

// The pool whose replicas are watched. vLLM's replicas of both pools count prompts under the same name, so a
// decode replica also counts prompts that it has not computed.
enum class Pool : std::uint8_t { both, prefill, decode };

// Number of requests in a router's queue, from its /metrics page.
double queued_requests(std::string_view page);

struct FleetReading {
  std::vector<ReplicaReading> replicas = {};
  int silent = 0;     // number of replicas that did not answer
  double queued = 0;  // number of requests in the routers' queues
};

class ReplicaWatch {
 public:
  // share: reported latencies are the values that this fraction of the requests did not exceed.
  explicit ReplicaWatch(double share, Pool pool = Pool::both) : share_(share), pool_(pool) {}

  // pages: by the replica's address. Work from before the first reading of a replica is not counted.
  FleetReading read(const std::map<std::string, Result<std::string>>& pages);

 private:
  double share_;
  Pool pool_;
  std::map<std::string, ServerLoad> before_;
};

}  // namespace octavo::fleet
