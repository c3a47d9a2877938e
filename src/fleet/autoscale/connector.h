// Interface for scaling a fleet to the number of replicas that the planner has decided.
#pragma once

#include <cstdint>

namespace octavo::fleet {

class Connector {
 public:
  virtual ~Connector() = default;

  // Called several times a second on one thread, with the required number of replicas. Logs failures and
  // retries.
  virtual void tick(int replicas, std::int64_t now_us) = 0;

  // Called at the end of the program until it returns true: every process that must end with the program has
  // ended.
  virtual bool end(std::int64_t) { return true; }
};

// Does nothing: for dry runs, and for fleets that HPA or KEDA scales by the planner's metrics.
class NoConnector final : public Connector {
 public:
  void tick(int, std::int64_t) override {}
};

}  // namespace octavo::fleet
