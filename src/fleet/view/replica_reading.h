// Metrics of a replica, for the programs that decide the number of replicas.
#pragma once

namespace octavo::fleet {

// Work of a replica since the last read.
struct ReplicaReading {
  double tokens = 0;                // of prompts and answers, computed
  double finished = 0;              // requests
  double running = 0, waiting = 0;  // now
  // Latency that the SLO's share of requests did not exceed. Negative: there was no request.
  double ttft_ms = -1, tpot_ms = -1;
};

}  // namespace octavo::fleet
