// Metrics of a simulated replica since the last reading, like a real replica's /metrics page.
#pragma once

#include <vector>

#include "fleet/view/replica_reading.h"
#include "traffic/figures.h"

namespace octavo::fleet {

class ReplicaMeter {
 public:
  // Reports a request's first token. Its whole prompt counts as computed, including the cached part.
  void first_token(const traffic::AnswerTimes& answer);
  void token() { reading_.tokens += 1; }
  void finished(const traffic::AnswerTimes& answer);

  // Latencies are those that a fraction `share` of the requests did not exceed. Resets the counters.
  ReplicaReading read(double share, int running, int waiting);

 private:
  ReplicaReading reading_;
  std::vector<double> ttft_ms_, tpot_ms_;
};

}  // namespace octavo::fleet
