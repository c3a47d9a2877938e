// The load that fleets of each size can serve within an SLO, measured by simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

// Returns the tokens per second of prompts and answers in each window; the first window begins at the first
// arrival. Errors: too many windows (field "window").
Result<std::vector<double>> window_loads(const Trace& trace, std::int64_t window_us);

struct Capacity {
  int replicas = 0;
  double load = 0;  // tokens/s
};

// Capacity by number of replicas, with ascending loads.
class CapacityTable {
 public:
  explicit CapacityTable(std::vector<Capacity> rows);

  // Returns the smallest number of replicas for the load, interpolated between rows, and in proportion to the
  // last row above it.
  int replicas_for(double load) const;
  const std::vector<Capacity>& rows() const { return rows_; }

 private:
  std::vector<Capacity> rows_;
};

// Reads the file from `octavo plan --window --output-json`. Errors name the field.
Result<CapacityTable> read_capacity(const std::string& path);

// Simulates the traffic with fleets of fewer than `enough` replicas; `enough` replicas serve all of it. Empty
// windows separate the windows, so that the queue of one does not affect the next. The capacity of a fleet is
// the largest load L such that all requests of windows with loads from L/2 to L meet the SLO.
Result<CapacityTable> measure_capacity(SimulationOptions options, const Trace& trace, const Slo& slo,
                                       std::int64_t window_us, int enough, const TrialProgress& progress);

}  // namespace octavo::fleet
