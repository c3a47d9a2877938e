// Computes the work and latencies of replicas from two readings of their metrics.
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

// The role of the watched replicas. vLLM counts prompt tokens in the same metric for both roles, so a
// decode replica also counts prompts that a prefill replica has computed.
enum class Pool : std::uint8_t { both, prefill, decode };

double queued_requests(std::string_view page);

struct FleetReading {
  std::vector<ReplicaReading> replicas = {};
  int silent = 0;
  double queued = 0;
  std::string problem = {};  // why a replica is silent; "": all have answered

  // Returns the number of replicas, with the silent ones. Returns an error if none has answered: the silent
  // one may be a router, which lists any number of replicas.
  Result<int> existing() const;
};

class ReplicaWatch {
 public:
  // `share` is the fraction of requests that must be within the SLO. The reported latencies are its
  // percentiles.
  explicit ReplicaWatch(double share, Pool pool = Pool::both) : share_(share), pool_(pool) {}

  // Returns the work since the previous call. `pages` has the metrics page of each replica, by address. The
  // first reading of a replica reports no work.
  FleetReading read(const std::map<std::string, Result<std::string>>& pages);

 private:
  double share_;
  Pool pool_;
  std::map<std::string, ServerLoad> before_;
};

}  // namespace octavo::fleet
