// Selects the endpoints that can get a request.
#pragma once

#include <span>

#include "fleet/decide/cycle.h"

namespace octavo::fleet {

// Whether the endpoint serves this model or adapter. True if the endpoint has not reported its models.
bool serves(const Endpoint& endpoint, std::string_view model);

// Selects the available endpoints that serve the request's model and have the role `part` (Role::both: any
// role), except those in `excluded`, which were already tried. Otherwise selects endpoints whose
// circuit breaker is open and endpoints that were not probed yet: an attempt may succeed, but a refusal
// cannot.
void eligible(const FleetView& view, const RouteRequest& request, Role part,
              std::span<const EndpointId> excluded, Candidates& out);

}  // namespace octavo::fleet
