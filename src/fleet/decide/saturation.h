// Load of the endpoints as a fraction of their capacity; from 1 on they are saturated. Also tells which
// endpoints are full.
#pragma once

#include <cstdint>
#include <variant>

#include "fleet/decide/inflight.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

class Parameters;

// llm-d's utilization-detector: measures queues and KV caches.
struct UtilizationDetector {
  double queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  std::int64_t staleness_us = 200'000;  // maximum age of metrics; an endpoint with older ones counts as full
  double headroom = 0;                  // an endpoint is full from threshold * (1 + headroom) on

  static UtilizationDetector read(Parameters& parameters);
  // Returns the mean of max(queue / threshold, KV use / threshold) over all endpoints; 1 without endpoints.
  double saturation(const FleetView& view, std::int64_t now_us) const;
  bool full(const Member& member, std::int64_t now_us) const;
};

// llm-d's concurrency-detector: measures the requests in flight, their tokens, or the maximum of both
// fractions.
struct ConcurrencyDetector {
  bool by_requests = true, by_tokens = false;
  std::int64_t requests_max = 100;  // maximum number of requests at one endpoint
  std::int64_t tokens_max = 1'000'000;
  double headroom = 0;

  static ConcurrencyDetector read(Parameters& parameters);
  // Returns the mean of the endpoints' used fractions; 1 without endpoints.
  double saturation(const FleetView& view, const Inflight& inflight) const;
  bool full(const Load& load) const { return share(load) >= 1 + headroom; }

 private:
  double share(const Load& load) const;
};

using SaturationDetector = std::variant<UtilizationDetector, ConcurrencyDetector>;

}  // namespace octavo::fleet
