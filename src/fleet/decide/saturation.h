// Saturation detectors, as in llm-d: measure the load of the endpoints as a fraction of their capacity. A
// saturation of 1 or more means that the endpoints have no free capacity. FlowGate uses them.
#pragma once

#include <cstdint>
#include <variant>

#include "fleet/decide/inflight.h"
#include "fleet/view/fleet_view.h"

namespace octavo::fleet {

class Parameters;

// llm-d's utilization-detector: measures queues and KV cache utilization.
struct UtilizationDetector {
  double queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  std::int64_t staleness_us = 200'000;  // maximum age of metrics; older metrics are stale
  // true: saturation() ignores endpoints with stale metrics; false: they count as full
  bool ignores_stale = false;
  double headroom = 0;                  // an endpoint is full above threshold * (1 + headroom)

  static UtilizationDetector read(Parameters& parameters);
  // Returns the mean over all endpoints of max(waiting / threshold, KV cache utilization / threshold).
  // Returns 1 if there are no endpoints, and 0 if all are ignored.
  double saturation(const FleetView& view, std::int64_t now_us) const;
  // Returns whether the endpoint's metrics are missing or too old.
  bool stale(const Member& member, std::int64_t now_us) const;
  bool full(const Member& member, std::int64_t now_us) const;
};

// llm-d's concurrency-detector: measures the requests in flight, their tokens, or the maximum of both
// fractions.
struct ConcurrencyDetector {
  bool by_requests = true, by_tokens = false;
  std::int64_t requests_max = 100;  // capacity of one endpoint
  std::int64_t tokens_max = 1'000'000;
  double headroom = 0;

  static ConcurrencyDetector read(Parameters& parameters);
  // Returns the mean of the endpoints' used fractions. Returns 1 if there are no endpoints.
  double saturation(const FleetView& view, const Inflight& inflight) const;
  bool full(const Load& load) const { return share(load) >= 1 + headroom; }

 private:
  double share(const Load& load) const;
};

using SaturationDetector = std::variant<UtilizationDetector, ConcurrencyDetector>;

}  // namespace octavo::fleet
