#include "fleet/decide/saturation.h"

#include <algorithm>
#include <string>

#include "fleet/decide/parameters.h"

namespace octavo::fleet {

UtilizationDetector UtilizationDetector::read(Parameters& parameters) {
  UtilizationDetector detector;
  parameters.read("queueDepthThreshold", detector.queue_depth_threshold, 0.001, 1e9);
  parameters.read("kvCacheUtilThreshold", detector.kv_usage_threshold, 0.001, 1);
  parameters.read_duration("metricsStalenessThreshold", detector.staleness_us);
  parameters.read("headroom", detector.headroom, 0, 1e6);
  std::string policy = "saturated";
  parameters.read("stalenessPolicy", policy);
  if (policy != "saturated" && policy != "ignore")
    parameters.fail("stalenessPolicy", "must be \"saturated\" or \"ignore\"");
  detector.ignores_stale = policy == "ignore";
  return detector;
}

bool UtilizationDetector::stale(const Member& member, std::int64_t now_us) const {
  const std::int64_t observed_us = member.state.observed_us;
  return observed_us == kNeverObserved || now_us - observed_us > staleness_us;
}

double UtilizationDetector::saturation(const FleetView& view, std::int64_t now_us) const {
  if (view.members.empty()) return 1;
  double sum = 0;
  int count = 0;
  for (const Member& member : view.members) {
    const EndpointState& state = member.state;
    const bool is_stale = stale(member, now_us);
    if (is_stale && ignores_stale) continue;
    ++count;
    sum +=
        is_stale ? 1 : std::max(state.waiting / queue_depth_threshold, state.kv_usage / kv_usage_threshold);
  }
  return count > 0 ? sum / count : 0;
}

bool UtilizationDetector::full(const Member& member, std::int64_t now_us) const {
  const EndpointState& state = member.state;
  return stale(member, now_us) || state.waiting >= queue_depth_threshold * (1 + headroom) ||
         state.kv_usage >= kv_usage_threshold * (1 + headroom);
}

ConcurrencyDetector ConcurrencyDetector::read(Parameters& parameters) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  ConcurrencyDetector detector;
  std::string mode = "requests", producer = "inflight-load-producer";
  parameters.read("concurrencyMode", mode);
  if (mode != "requests" && mode != "tokens" && mode != "hybrid")
    parameters.fail("concurrencyMode", "must be \"requests\", \"tokens\" or \"hybrid\"");
  detector.by_requests = mode != "tokens";
  detector.by_tokens = mode != "requests";
  parameters.read("maxConcurrency", detector.requests_max, 1, kMost);
  parameters.read("maxTokenConcurrency", detector.tokens_max, 1, kMost);
  parameters.read("headroom", detector.headroom, 0, 1e6);
  // inFlightLoadProducerName has no effect, because the balancer counts the requests in flight.
  parameters.read("inFlightLoadProducerName", producer);
  return detector;
}

double ConcurrencyDetector::share(const Load& load) const {
  const double requests = load.requests / static_cast<double>(requests_max);
  const double tokens = static_cast<double>(load.context_tokens) / static_cast<double>(tokens_max);
  return std::max(by_requests ? requests : 0, by_tokens ? tokens : 0);
}

double ConcurrencyDetector::saturation(const FleetView& view, const Inflight& inflight) const {
  if (view.members.empty()) return 1;
  double sum = 0;
  for (const Member& member : view.members) sum += share(inflight.load(member.id));
  return sum / static_cast<double>(view.members.size());
}

}  // namespace octavo::fleet
