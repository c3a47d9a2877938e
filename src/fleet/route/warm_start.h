// Warm start: a new router copies the KV index of another router (GET /kv_index), then applies the replicas'
// events. Engines can replay only their latest events, but a router that runs for longer has applied all of
// them.
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
  // The arguments must outlive this object. Without options.warm_from, it does nothing.
  WarmStart(Balancer& balancer, RouteMetrics& metrics, const RouterOptions& options)
      : balancer_(balancer), metrics_(metrics), options_(options), peer_(options.warm_from) {}

  // Copies the blocks of one worker, and waits for them. Called once for each worker, on the thread that
  // subscribes to its events. Returns an empty position if the peer is unreachable or does not know the
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
