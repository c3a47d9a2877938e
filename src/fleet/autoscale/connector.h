// Interface that scales a fleet to the number of replicas that the planner decides.
#pragma once

#include <cstdint>

namespace octavo::fleet {

class Connector {
 public:
  virtual ~Connector() = default;

  // Called often, on one thread, with the required number of replicas. Failures are logged and retried.
  virtual void tick(int replicas, std::int64_t now_us) = 0;

  // Called at the end of the program until it returns true: all processes that must end with the program have
  // ended.
  virtual bool end(std::int64_t) { return true; }
};

// Does not scale: for dry runs, and if HPA or KEDA scales by the planner's metrics.
class NoConnector final : public Connector {
 public:
  void tick(int, std::int64_t) override {}
};

}  // namespace octavo::fleet
