#include "fleet/autoscale/replica_watch.h"

#include <utility>

namespace octavo::fleet {

FleetReading ReplicaWatch::read(const std::map<std::string, Result<std::string>>& pages) {
  FleetReading reading;
  std::map<std::string, ServerLoad> seen;
  for (const auto& [server, page] : pages) {
    const auto known = before_.find(server);
    if (!page) {
      ++reading.silent;
      if (known != before_.end()) seen.insert(*known);
      continue;
    }
    const ServerLoad now = read_server_load(*page);
    ReplicaReading replica{.running = now.running, .waiting = now.waiting};
    if (known != before_.end()) {
      const ServerLoad done = since(known->second, now);
      replica.tokens = done.prompt_tokens + done.generation_tokens;
      replica.finished = done.finished;
      replica.ttft_ms = 1e3 * quantile(done.first_token, share_);
      replica.tpot_ms = 1e3 * quantile(done.time_per_token, share_);
    }
    reading.replicas.push_back(replica);
    seen.emplace(server, now);
  }
  before_ = std::move(seen);
  return reading;
}

}  // namespace octavo::fleet
