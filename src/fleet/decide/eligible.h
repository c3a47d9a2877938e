// Selects the endpoints that may get a request.
#pragma once

#include <span>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

// Returns whether the endpoint serves this model or adapter; true if it has not reported its models.
bool serves(const Endpoint& endpoint, std::string_view model);

// Selects available endpoints that serve the request's model and have the role `part` (Role::both: any role).
// `excluded`: endpoints that were already tried. If none is available, selects endpoints with an open circuit
// breaker and endpoints that were not probed yet: an attempt may succeed.
void eligible(const FleetView& view, const RouteRequest& request, Role part,
              std::span<const EndpointId> excluded, Candidates& out);

}  // namespace octavo::fleet
