// A new router copies the KV index of another router (GET /kv_index), then applies replicas' events. Engines
// replay only their last events; a router that has run for longer knows all of them.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "fleet/balance/balancer.h"
#include "fleet/index/held_dump.h"
#include "fleet/route/route_metrics.h"
#include "fleet/route/router_options.h"
#include "http/url.h"

namespace octavo::fleet {

class WarmStart {
 public:
  // The arguments must outlive this object. Without options.warm_from no router is read.
  WarmStart(Balancer& balancer, RouteMetrics& metrics, const RouterOptions& options)
      : balancer_(balancer), metrics_(metrics), options_(options), peer_(options.warm_from) {}

  // Waits for the peer's answer and applies it, once for each worker. Call it on the thread that will
  // subscribe to the worker. Returns an empty position if the peer is unreachable or does not know the
  // worker.
  CachePosition operator()(const Member& member);

 private:
  Result<std::optional<HeldDump>> ask(const std::string& worker) const;

  Balancer& balancer_;
  RouteMetrics& metrics_;
  const RouterOptions& options_;
  std::optional<http::Url> peer_;  // nullopt after a failure
  std::set<std::string> asked_;
};

}  // namespace octavo::fleet
