// Load that fleets of each size serve within an SLO, measured by simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

// Tokens per second, prompts and answers, of the requests in each window from the first arrival on. Error:
// too many windows (field "window").
Result<std::vector<double>> window_loads(const Trace& trace, std::int64_t window_us);

struct Capacity {
  int replicas = 0;
  double load = 0;  // tokens a second
};

// Capacity by number of replicas; loads ascend.
class CapacityTable {
 public:
  explicit CapacityTable(std::vector<Capacity> rows);

  // The fewest replicas that serve the load: between the rows on a line, beyond them in proportion to the
  // last.
  int replicas_for(double load) const;
  const std::vector<Capacity>& rows() const { return rows_; }

 private:
  std::vector<Capacity> rows_;
};

// The table in a file that `octavo plan --window --output-json` wrote. Errors name the field.
Result<CapacityTable> read_capacity(const std::string& path);

// Simulates the traffic over fleets smaller than one that serves all of it. Windows are separated, so that
// the queue of one does not reach the next. The capacity of a fleet is the largest load L such that all
// requests of windows with a load between L/2 and L meet the SLO.
Result<CapacityTable> measure_capacity(SimulationOptions options, const Trace& trace, const Slo& slo,
                                       std::int64_t window_us, int enough, const TrialProgress& progress);

}  // namespace octavo::fleet
