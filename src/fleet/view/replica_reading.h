// Metrics of a replica, for programs that decide the number of replicas.
#pragma once

namespace octavo::fleet {

// Work of a replica since the last reading.
struct ReplicaReading {
  double tokens = 0;                // number of computed tokens of prompts and answers
  double finished = 0;              // number of finished requests
  double running = 0, waiting = 0;  // current numbers of requests
  // Latencies in ms that the SLO's fraction of requests did not exceed. Negative: there was no request.
  double ttft_ms = -1, tpot_ms = -1;
};

}  // namespace octavo::fleet
