#include "fleet/autoscale/replica_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fleet/observe/metric_line.h"

namespace octavo::fleet {

double queued_requests(std::string_view page) {
  double queued = 0;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const auto line = read_metric(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (line && line->name == "llm_d_epp_flow_control_queue_size") queued += line->value;
  }
  return queued;
}

Result<int> FleetReading::existing() const {
  if (replicas.empty() && silent > 0) return failure(ErrorCode::unavailable, "{}", problem);
  return static_cast<int>(replicas.size()) + silent;
}

FleetReading ReplicaWatch::read(const std::map<std::string, Result<std::string>>& pages) {
  FleetReading reading;
  std::map<std::string, ServerLoad> seen;
  for (const auto& [server, page] : pages) {
    const auto known = before_.find(server);
    const auto now = page ? read_server_load(*page) : std::nullopt;
    if (!now) {
      ++reading.silent;
      reading.problem = fmt::format(
          "{}: {}", server,
          page ? "GET /metrics returned no valid metrics of vLLM or Octavo" : page.error().message);
      if (known != before_.end()) seen.insert(*known);
      continue;
    }
    ReplicaReading replica{.running = now->running, .waiting = now->waiting};
    if (known != before_.end()) {
      const ServerLoad done = since(known->second, *now);
      if (pool_ != Pool::decode) replica.tokens += done.prompt_tokens;
      if (pool_ != Pool::prefill) replica.tokens += done.generation_tokens;
      replica.finished = done.finished;
      replica.ttft_ms = 1e3 * quantile(done.first_token, share_);
      replica.tpot_ms = 1e3 * quantile(done.time_per_token, share_);
    }
    reading.replicas.push_back(replica);
    seen.emplace(server, *now);
  }
  before_ = std::move(seen);
  return reading;
}

}  // namespace octavo::fleet
