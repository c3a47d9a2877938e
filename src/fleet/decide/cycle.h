// The inputs of one decision: everything that a plugin may read. A cycle lives as long as the decision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fleet/decide/draws.h"
#include "fleet/decide/inflight.h"
#include "fleet/index/overlap.h"
#include "fleet/view/fleet_view.h"
#include "fleet/view/route_request.h"

namespace octavo::fleet {

class StepTimer;

struct Cycle {
  const FleetView& view;
  const RouteRequest& request;
  const Inflight& inflight;
  std::int64_t now_us;
  Draws draws;
  std::span<const Overlap> overlaps = {};  // one of each producer, see Plugins::produce
  // Where it was placed together with others, see burst.h.
  EndpointId burst_home = kNoEndpoint;
  // The decode endpoint, while the endpoint that computes its prompt is chosen.
  EndpointId peer = kNoEndpoint;
  bool trial = false;          // nothing is sent to the endpoint picked
  StepTimer* timer = nullptr;  // null: nobody asks how long plugins take

  // Tokens of the prompt that the endpoint need not compute, as far as any producer knows.
  std::int64_t cached_tokens(EndpointId endpoint) const {
    std::int64_t most = 0;
    for (const Overlap& overlap : overlaps)
      if (overlap.cached)
        most = std::max(most, std::int64_t{overlap.of(endpoint).blocks()} * overlap.block_size);
    return std::min(most, static_cast<std::int64_t>(request.tokens.size()));
  }

  Load load(const Member& member) const { return inflight.load(member.id); }
};

// The endpoints that are still in question, in no order that means anything.
using Candidates = std::vector<const Member*>;

}  // namespace octavo::fleet
