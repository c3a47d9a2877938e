// Warm start: a new router copies the index of KV blocks from a peer router (GET /kv_index), and then
// applies the workers' new events. Engines can only replay their latest events, but the peer has applied
// all events.
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
  // Does nothing if options.warm_from is not set. The arguments must outlive this object.
  WarmStart(Balancer& balancer, RouteMetrics& metrics, const RouterOptions& options)
      : balancer_(balancer), metrics_(metrics), options_(options), peer_(options.warm_from) {}

  // Copies the blocks of one worker, and waits for them. Called once for each worker, on the thread that
  // subscribes to KV cache events. Returns an empty position if the peer is unreachable or does not know
  // the worker.
  CachePosition operator()(const Member& member);

 private:
  Result<std::optional<HeldDump>> fetch(const std::string& worker) const;

  Balancer& balancer_;
  RouteMetrics& metrics_;
  const RouterOptions& options_;
  std::optional<http::Url> peer_;  // nullopt after the peer has failed
  std::set<std::string> requested_;
};

}  // namespace octavo::fleet
