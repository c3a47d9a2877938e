// Who may get a request at all.
#pragma once

#include <span>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

// Does it serve this model or adapter? One that has not said what it serves is taken to.
bool serves(const Endpoint& endpoint, std::string_view model);

// The available endpoints that serve the request's model and take this part of its work (Role::both: any
// part); without those in `excluded`, which have been tried. Where no such endpoint is available, those whose
// circuit breaker is open and those that no probe has reached yet: a request that is refused for certain is
// worse than one that may fail.
void eligible(const FleetView& view, const RouteRequest& request, Role part,
              std::span<const EndpointId> excluded, Candidates& out);

}  // namespace octavo::fleet
