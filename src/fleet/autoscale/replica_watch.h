// Differences between two reads of the replicas' metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/observe/server_load.h"
#include "fleet/plan/autoscaler.h"

namespace octavo::fleet {

struct FleetReading {
  std::vector<ReplicaReading> replicas = {};
  int silent = 0;  // replicas that did not answer
};

class ReplicaWatch {
 public:
  // Latencies are those that this fraction of the requests did not exceed.
  explicit ReplicaWatch(double share) : share_(share) {}

  // By address. Counts nothing from before the first read of a replica.
  FleetReading read(const std::map<std::string, Result<std::string>>& pages);

 private:
  double share_;
  std::map<std::string, ServerLoad> before_;
};

}  // namespace octavo::fleet
