// Metrics of a simulated replica since the last reading, like those on a replica's /metrics page.
#pragma once

#include <vector>

#include "fleet/view/replica_reading.h"
#include "traffic/figures.h"

namespace octavo::fleet {

class ReplicaMeter {
 public:
  // Counts the whole prompt as computed, including its cached part.
  void first_token(const traffic::AnswerTimes& answer);
  void token() { reading_.tokens += 1; }
  void finished(const traffic::AnswerTimes& answer);

  // Returns the metrics, and resets the counters. share: the quantile of the latencies.
  ReplicaReading read(double share, int running, int waiting);

 private:
  ReplicaReading reading_;
  std::vector<double> ttft_ms_, tpot_ms_;
};

}  // namespace octavo::fleet
