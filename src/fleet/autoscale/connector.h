// Interface that scales a fleet to the planner's number of replicas.
#pragma once

#include <cstdint>

namespace octavo::fleet {

class Connector {
 public:
  virtual ~Connector() = default;

  // Called often, on one thread, with the wanted number of replicas. Failures are logged and tried again.
  virtual void tick(int replicas, std::int64_t now_us) = 0;

  // Called while the program ends, until it returns true: everything that must end with the program has
  // ended.
  virtual bool end(std::int64_t) { return true; }
};

// Changes nothing: for dry runs, and if HPA or KEDA scales by the planner's metrics.
class NoConnector final : public Connector {
 public:
  void tick(int, std::int64_t) override {}
};

}  // namespace octavo::fleet
