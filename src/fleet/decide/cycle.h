// A cycle is one decision. It has the inputs that plugins read, and exists only during the decision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fleet/decide/draws.h"
#include "fleet/decide/inflight.h"
#include "fleet/decide/pace.h"
#include "fleet/index/overlap.h"
#include "fleet/view/fleet_view.h"
#include "fleet/view/route_request.h"

namespace octavo::fleet {

class StepTimer;

struct Cycle {
  const FleetView& view;
  const RouteRequest& request;
  const Inflight& inflight;
  const Pace& pace;
  std::int64_t now_us;
  Draws draws;
  std::span<const Overlap> overlaps = {};  // [producer] results of Plugins::produce()
  // result of place_burst() for this request
  EndpointId burst_home = kNoEndpoint;
  // chosen decode endpoint, while the prefill endpoint is being chosen
  EndpointId peer = kNoEndpoint;
  bool trial = false;          // the caller will not send the request to the chosen endpoint
  StepTimer* timer = nullptr;  // null: the plugins' times are not measured

  // Returns the number of prompt tokens that the endpoint has cached, as the maximum over all producers.
  std::int64_t cached_tokens(EndpointId endpoint) const {
    std::int64_t most = 0;
    for (const Overlap& overlap : overlaps)
      if (overlap.cached)
        most = std::max(most, std::int64_t{overlap.of(endpoint).blocks()} * overlap.block_size);
    return std::min(most, static_cast<std::int64_t>(request.tokens.size()));
  }

  Load load(const Member& member) const { return inflight.load(member.id); }
};

// The endpoints that the filters have kept, in arbitrary order.
using Candidates = std::vector<const Member*>;

}  // namespace octavo::fleet
