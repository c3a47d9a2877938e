// Who makes a fleet as large as the planner wants it.
#pragma once

#include <cstdint>

namespace octavo::fleet {

class Connector {
 public:
  virtual ~Connector() = default;

  // Often, on one thread: so many replicas there shall be. What does not work is logged and tried again.
  virtual void tick(int replicas, std::int64_t now_us) = 0;

  // The same while the program ends, until it is true: nothing is left that ends with it.
  virtual bool end(std::int64_t) { return true; }
};

// Changes nothing: for dry runs, and where somebody else scales by the planner's metrics (HPA, KEDA).
class NoConnector final : public Connector {
 public:
  void tick(int, std::int64_t) override {}
};

}  // namespace octavo::fleet
