// What those who decide how many replicas there shall be are told of each.
#pragma once

namespace octavo::fleet {

// What a replica did since it was read the last time.
struct ReplicaReading {
  double tokens = 0;                // of prompts and answers, computed
  double finished = 0;              // requests
  double running = 0, waiting = 0;  // now
  // Such a share of its requests as the SLO asks for was no later than this. Negative: there was none.
  double ttft_ms = -1, tpot_ms = -1;
};

}  // namespace octavo::fleet
