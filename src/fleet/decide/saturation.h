// Load of the endpoints as a share of their capacity; from 1 on they are saturated. Also reports the
// endpoints without free capacity.
#pragma once

#include <cstdint>
#include <variant>

#include "fleet/decide/inflight.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

class Parameters;

// llm-d's utilization-detector: uses the endpoints' queues and KV caches.
struct UtilizationDetector {
  double queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  std::int64_t staleness_us = 200'000;  // older metrics count as a full endpoint
  double headroom = 0;                  // share above the threshold at which an endpoint may still be chosen

  static UtilizationDetector read(Parameters& parameters);
  // The mean of all endpoints' max(queue / threshold, KV use / threshold); 1 without endpoints.
  double saturation(const FleetView& view, std::int64_t now_us) const;
  bool full(const Member& member, std::int64_t now_us) const;
};

// llm-d's concurrency-detector: uses the requests in flight, their tokens, or the scarcer of both.
struct ConcurrencyDetector {
  bool by_requests = true, by_tokens = false;
  std::int64_t requests_max = 100;  // of one endpoint
  std::int64_t tokens_max = 1'000'000;
  double headroom = 0;

  static ConcurrencyDetector read(Parameters& parameters);
  // The mean of all endpoints' shares; 1 without endpoints.
  double saturation(const FleetView& view, const Inflight& inflight) const;
  bool full(const Load& load) const { return share(load) >= 1 + headroom; }

 private:
  double share(const Load& load) const;
};

using SaturationDetector = std::variant<UtilizationDetector, ConcurrencyDetector>;

}  // namespace octavo::fleet
