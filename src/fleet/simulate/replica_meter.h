// What a simulated replica says of the time since it was read, as the /metrics page of a real one does.
#pragma once

#include <vector>

#include "fleet/view/replica_reading.h"
#include "traffic/figures.h"

namespace octavo::fleet {

class ReplicaMeter {
 public:
  // A request has its first token: its prompt counts as computed, what was cached of it, too.
  void first_token(const traffic::AnswerTimes& answer);
  void token() { reading_.tokens += 1; }
  void finished(const traffic::AnswerTimes& answer);

  // Latencies are those that such a share of the requests did not exceed. Counts from here on anew.
  ReplicaReading read(double share, int running, int waiting);

 private:
  ReplicaReading reading_;
  std::vector<double> ttft_ms_, tpot_ms_;
};

}  // namespace octavo::fleet
