// Measures a simulated replica between two readings, like the metrics page of a real replica.
#pragma once

#include <vector>

#include "fleet/view/replica_reading.h"
#include "traffic/figures.h"

namespace octavo::fleet {

class ReplicaMeter {
 public:
  // Counts the whole prompt as computed, even if a part of it was cached.
  void first_token(const traffic::AnswerTimes& answer);
  void token() { reading_.tokens += 1; }
  void finished(const traffic::AnswerTimes& answer);

  // Returns the metrics, and resets the counters. `share` is the fraction of requests within the reported
  // latencies.
  ReplicaReading read(double share, int running, int waiting);

 private:
  ReplicaReading reading_;
  std::vector<double> ttft_ms_, tpot_ms_;
};

}  // namespace octavo::fleet
