// Load of the endpoints as a fraction of their capacity; they are saturated from 1 on. Also finds the
// endpoints without free capacity.
#pragma once

#include <cstdint>
#include <variant>

#include "fleet/decide/inflight.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

class Parameters;

// llm-d's utilization-detector: measures the endpoints' queues and KV caches.
struct UtilizationDetector {
  double queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  std::int64_t staleness_us = 200'000;  // an endpoint with older metrics counts as full
  double headroom = 0;                  // an endpoint may be chosen up to threshold x (1 + headroom)

  static UtilizationDetector read(Parameters& parameters);
  // The mean of max(queue / threshold, KV use / threshold) over all endpoints; 1 without endpoints.
  double saturation(const FleetView& view, std::int64_t now_us) const;
  bool full(const Member& member, std::int64_t now_us) const;
};

// llm-d's concurrency-detector: counts the requests in flight, their tokens, or the scarcer of both.
struct ConcurrencyDetector {
  bool by_requests = true, by_tokens = false;
  std::int64_t requests_max = 100;  // maximum number of requests at one endpoint
  std::int64_t tokens_max = 1'000'000;
  double headroom = 0;

  static ConcurrencyDetector read(Parameters& parameters);
  // The mean of the endpoints' used fractions; 1 without endpoints.
  double saturation(const FleetView& view, const Inflight& inflight) const;
  bool full(const Load& load) const { return share(load) >= 1 + headroom; }

 private:
  double share(const Load& load) const;
};

using SaturationDetector = std::variant<UtilizationDetector, ConcurrencyDetector>;

}  // namespace octavo::fleet
