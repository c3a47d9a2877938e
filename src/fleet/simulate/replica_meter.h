// Metrics of a simulated replica since the last read, like the /metrics page of a real one.
#pragma once

#include <vector>

#include "fleet/view/replica_reading.h"
#include "traffic/figures.h"

namespace octavo::fleet {

class ReplicaMeter {
 public:
  // A request has its first token: its whole prompt counts as computed, with its cached part.
  void first_token(const traffic::AnswerTimes& answer);
  void token() { reading_.tokens += 1; }
  void finished(const traffic::AnswerTimes& answer);

  // Latencies that a fraction `share` of the requests did not exceed. Starts a new count.
  ReplicaReading read(double share, int running, int waiting);

 private:
  ReplicaReading reading_;
  std::vector<double> ttft_ms_, tpot_ms_;
};

}  // namespace octavo::fleet
