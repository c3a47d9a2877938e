#include "fleet/decide/eligible.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

bool listed(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool serves(const Endpoint& endpoint, std::string_view model) {
  return model.empty() || endpoint.models.empty() || listed(endpoint.models, model) ||
         listed(endpoint.adapters, model);
}

void eligible(const FleetView& view, const RouteRequest& request, Role part,
              std::span<const EndpointId> excluded, Candidates& out) {
  out.clear();
  bool any_available = false;
  Candidates doubtful;  // endpoints that were not probed yet or have an open circuit breaker
  for (const Member& member : view.members) {
    const Role role = member.endpoint->role;
    const Availability state = member.state.availability;
    const bool is_available = state == Availability::available;
    if ((!is_available && state != Availability::broken && state != Availability::unprobed) ||
        (part != Role::both && role != Role::both && role != part) ||
        !serves(*member.endpoint, request.model))
      continue;
    any_available = any_available || is_available;
    if (std::ranges::find(excluded, member.id) != excluded.end()) continue;
    (is_available ? out : doubtful).push_back(&member);
  }
  if (!any_available) out = std::move(doubtful);
}

}  // namespace octavo::fleet
