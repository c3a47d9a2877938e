// The load that fleets of each size can serve within an SLO, measured by simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

// Tokens per second of prompts and answers, for each window from the first arrival on. Error: too many
// windows (field "window").
Result<std::vector<double>> window_loads(const Trace& trace, std::int64_t window_us);

struct Capacity {
  int replicas = 0;
  double load = 0;  // tokens/s
};

// Capacity by number of replicas; loads are ascending.
class CapacityTable {
 public:
  explicit CapacityTable(std::vector<Capacity> rows);

  // The smallest number of replicas that can serve the load. Interpolates between rows, and extrapolates in
  // proportion to the last row.
  int replicas_for(double load) const;
  const std::vector<Capacity>& rows() const { return rows_; }

 private:
  std::vector<Capacity> rows_;
};

// Reads the table from a file that `octavo plan --window --output-json` wrote. Errors name the field.
Result<CapacityTable> read_capacity(const std::string& path);

// Simulates the traffic with fleets smaller than one that can serve all of it. Windows are separated, so that
// the queue of one does not affect the next. The capacity of a fleet is the largest load L such that all
// requests of windows with a load between L/2 and L meet the SLO.
Result<CapacityTable> measure_capacity(SimulationOptions options, const Trace& trace, const Slo& slo,
                                       std::int64_t window_us, int enough, const TrialProgress& progress);

}  // namespace octavo::fleet
