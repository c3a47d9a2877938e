// How much of what the endpoints can take is taken: 1 and more is all.
#pragma once

#include <cstdint>

#include "fleet/decide/inflight.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

// llm-d's utilization-detector: by what endpoints tell of their queues and KV caches.
struct UtilizationDetector {
  double queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  std::int64_t staleness_us = 200'000;  // what is older says nothing: taken for all

  // The mean of all endpoints' max(queue / threshold, KV use / threshold); without endpoints 1.
  double saturation(const FleetView& view, std::int64_t now_us) const;
};

// llm-d's concurrency-detector: by the requests that were sent and have not ended.
struct ConcurrencyDetector {
  std::int64_t requests_max = 100;  // of one endpoint

  double saturation(const FleetView& view, const Inflight& inflight) const;
};

}  // namespace octavo::fleet
