// Work and latency of a replica, which the planner and the autoscaler read from its metrics.
#pragma once

namespace octavo::fleet {

struct ReplicaReading {
  double tokens = 0;  // computed tokens of prompts and outputs, since the previous reading
  double finished = 0;
  double running = 0, waiting = 0;  // running and waiting requests at the time of the reading
  // Latencies in ms at the percentile that the SLO sets. Negative: no request finished.
  double ttft_ms = -1, tpot_ms = -1;
};

}  // namespace octavo::fleet
