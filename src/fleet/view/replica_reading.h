// Metrics of a replica, for the planner and the autoscaler.
#pragma once

namespace octavo::fleet {

// Work of a replica between two readings.
struct ReplicaReading {
  double tokens = 0;  // computed tokens of prompts and outputs
  double finished = 0;
  double running = 0, waiting = 0;  // requests at the time of the reading
  // Latency quantiles in ms, at the SLO's fraction of requests. Negative: no request.
  double ttft_ms = -1, tpot_ms = -1;
};

}  // namespace octavo::fleet
