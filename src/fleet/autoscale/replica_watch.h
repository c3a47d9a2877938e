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

// The role of the watched replicas. vLLM's prefill and decode replicas count prompt tokens with the same
// metric, so a decode replica also counts prompts that it has not computed.
enum class Pool : std::uint8_t { both, prefill, decode };

// Returns the number of requests in a router's queue, from its /metrics page.
double queued_requests(std::string_view page);

struct FleetReading {
  std::vector<ReplicaReading> replicas = {};
  int silent = 0;     // replicas that did not answer
  double queued = 0;  // requests in the routers' queues
};

class ReplicaWatch {
 public:
  // share: the quantile of the latencies to report.
  explicit ReplicaWatch(double share, Pool pool = Pool::both) : share_(share), pool_(pool) {}

  // Returns the work since the previous call. pages: metrics by the replica's address. The first reading of a
  // replica counts no work.
  FleetReading read(const std::map<std::string, Result<std::string>>& pages);

 private:
  double share_;
  Pool pool_;
  std::map<std::string, ServerLoad> before_;
};

}  // namespace octavo::fleet
