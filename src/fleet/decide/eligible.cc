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
  for (const Member& member : view.members) {
    const Role role = member.endpoint->role;
    if (member.state.availability == Availability::available &&
        (part == Role::both || role == Role::both || role == part) &&
        serves(*member.endpoint, request.model) && std::ranges::find(excluded, member.id) == excluded.end())
      out.push_back(&member);
  }
}

}  // namespace octavo::fleet
