// Interface for scaling a fleet to the number of replicas that the planner has decided.
#pragma once

#include <cstdint>

#include "fleet/autoscale/replica_watch.h"

namespace octavo::fleet {

class Connector {
 public:
  virtual ~Connector() = default;

  // Returns the number of replicas before the first decision. Returns an error while it is unknown: the
  // planner then decides nothing, because it could remove replicas that it does not see.
  virtual Result<int> existing(const FleetReading& fleet) { return fleet.existing(); }

  // Called several times a second on one thread, with the required number of replicas. The connector logs
  // and retries failures itself.
  virtual void tick(int replicas, std::int64_t now_us) = 0;

  // Called repeatedly when the program stops, until it returns true. True: all processes that must end with
  // the program have ended.
  virtual bool end(std::int64_t) { return true; }
};

// Does nothing. Used in dry runs, and if HPA or KEDA scales the fleet by the planner's metrics.
class NoConnector final : public Connector {
 public:
  void tick(int, std::int64_t) override {}
};

}  // namespace octavo::fleet
