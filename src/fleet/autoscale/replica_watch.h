// Differences between two reads of the replicas' metrics.
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

// The pool whose replicas are watched. vLLM's counters name the prompts of both pools at both: a decode
// replica counts prompts that it has not computed.
enum class Pool : std::uint8_t { both, prefill, decode };

// Requests that wait in a router's queue, from its /metrics.
double queued_requests(std::string_view page);

struct FleetReading {
  std::vector<ReplicaReading> replicas = {};
  int silent = 0;     // replicas that did not answer
  double queued = 0;  // requests at routers
};

class ReplicaWatch {
 public:
  // Latencies are those that this fraction of the requests did not exceed.
  explicit ReplicaWatch(double share, Pool pool = Pool::both) : share_(share), pool_(pool) {}

  // By address. Counts nothing from before the first read of a replica.
  FleetReading read(const std::map<std::string, Result<std::string>>& pages);

 private:
  double share_;
  Pool pool_;
  std::map<std::string, ServerLoad> before_;
};

}  // namespace octavo::fleet
