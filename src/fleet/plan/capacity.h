// Measures by simulation the load that a fleet of each size can serve within an SLO.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

// Returns the tokens per second, of prompts and outputs together, in each window. The first window begins
// at the first arrival. Returns an error on "window" if there are too many windows.
Result<std::vector<double>> window_loads(const Trace& trace, std::int64_t window_us);

struct Capacity {
  int replicas = 0;
  double load = 0;  // tokens/s of prompts and outputs
};

// Capacity by number of replicas. Loads are ascending.
class CapacityTable {
 public:
  explicit CapacityTable(std::vector<Capacity> rows);

  // Returns the smallest number of replicas that serve the load. Interpolates between two rows. Above the
  // last row, the number is proportional to the load.
  int replicas_for(double load) const;
  const std::vector<Capacity>& rows() const { return rows_; }

 private:
  std::vector<Capacity> rows_;
};

// Reads a file that `octavo plan --window --output-json` has written. Returns an error on the field.
Result<CapacityTable> read_capacity(const std::string& path);

// Simulates the traffic with fleets of fewer than `enough` replicas, given that `enough` replicas serve all
// traffic. The simulation inserts empty windows, so that the queue of one window does not affect the next
// window. The capacity of a fleet is the largest load L such that all requests in windows with loads from
// L/2 to L meet the SLO.
Result<CapacityTable> measure_capacity(SimulationOptions options, const Trace& trace, const Slo& slo,
                                       std::int64_t window_us, int enough, const TrialProgress& progress);

}  // namespace octavo::fleet
