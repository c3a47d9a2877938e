// Selects the endpoints that may serve a request, before the filters run.
#pragma once

#include <span>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

// Returns whether the endpoint serves this model or adapter. Returns true if the endpoint's models are
// unknown.
bool serves(const Endpoint& endpoint, std::string_view model);

// Selects available endpoints that serve the request's model and have the role `part` (Role::both: any
// role), except those in `excluded`. If none is available, selects endpoints that were not probed yet or
// have an open circuit breaker, because an attempt may succeed.
void eligible(const FleetView& view, const RouteRequest& request, Role part,
              std::span<const EndpointId> excluded, Candidates& out);

}  // namespace octavo::fleet
