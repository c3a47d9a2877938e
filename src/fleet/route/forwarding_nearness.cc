// Prefers prefill workers near the decode worker, which fetches the prompt's KV blocks from them.
#include <algorithm>

#include "fleet/decide/eligible.h"
#include "fleet/decide/topology.h"
#include "fleet/route/forwarding.h"

namespace octavo::fleet {
namespace {

bool takes_prompts(const Member& member) {
  return member.endpoint->role == Role::prefill && member.state.availability == Availability::available;
}

// Returns whether the location of a prefill worker is known.
bool has_locations(const FleetView& view, const TopologyExtractor& topology) {
  return std::ranges::any_of(view.members, [&](const Member& member) {
    const auto& labels = member.endpoint->labels;
    return takes_prompts(member) && std::ranges::any_of(topology.labels, [&](const std::string& name) {
             return labels.contains(name);
           });
  });
}

// Returns `tried` and all prefill workers of the model that are not the nearest ones.
std::vector<EndpointId> without_far_ones(const FleetView& view, const TopologyExtractor& topology,
                                         const Endpoint& decode, std::string_view model,
                                         std::vector<EndpointId> tried) {
  const auto left = [&](const Member& member) {
    return takes_prompts(member) && serves(*member.endpoint, model) &&
           std::ranges::find(tried, member.id) == tried.end();
  };
  Nearness nearest = Nearness::none;
  for (const Member& member : view.members)
    if (left(member)) nearest = std::min(nearest, topology.between(decode, *member.endpoint));
  std::vector<EndpointId> excluded = tried;
  for (const Member& member : view.members)
    if (left(member) && topology.between(decode, *member.endpoint) > nearest) excluded.push_back(member.id);
  return excluded;
}

}  // namespace

// If locations are known, chooses the decode worker first.
std::expected<Choice, Refusal> Forwarding::choose_prefill() {
  static const TopologyExtractor kTopology;
  const auto view = balancer_.fleet().view();
  ChoiceOptions options = choice_options(Role::prefill);
  if (!has_locations(*view, kTopology)) return balancer_.choose(in_.route(), options);
  if (auto decode = balancer_.choose(in_.route(), choice_options(Role::decode))) {
    balancer_.ended(decode->booking, Outcome::neither);  // booked again when the prompt is computed
    owner_ = decode->endpoint->name;
  }
  const Member* decode = owner_.empty() ? nullptr : view->find(owner_);
  if (!decode) return balancer_.choose(in_.route(), options);
  const auto excluded =
      without_far_ones(*view, kTopology, *decode->endpoint, in_.route().model, history_.tried);
  options.excluded = excluded;
  return balancer_.choose(in_.route(), options);
}

}  // namespace octavo::fleet
