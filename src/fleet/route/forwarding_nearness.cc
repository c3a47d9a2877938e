// Prefers prefill workers near the decode worker, which fetches the prompt's KV blocks from them, unless they
// have much more work than the others.
#include <algorithm>
#include <limits>
#include <map>

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

// Prefill workers of one distance to the decode worker.
struct Group {
  std::vector<EndpointId> workers = {};
  std::int64_t least_work = std::numeric_limits<std::int64_t>::max();  // of its least loaded worker
};

// Returns the prefill workers to exclude because a nearer one exists whose work exceeds theirs by at most
// own_work, the work of the prompt itself.
std::vector<EndpointId> far_workers(const std::map<Nearness, Group>& groups, std::int64_t own_work) {
  std::vector<EndpointId> far;
  std::int64_t nearer = std::numeric_limits<std::int64_t>::max();
  for (const auto& [distance, group] : groups) {
    if (nearer <= group.least_work + own_work)
      far.insert(far.end(), group.workers.begin(), group.workers.end());
    nearer = std::min(nearer, group.least_work);
  }
  return far;
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
  // Without a tokenizer, work is the number of requests.
  const auto own_tokens = static_cast<std::int64_t>(in_.route().tokens.size());
  std::map<Nearness, Group> groups;
  for (const Member& member : view->members) {
    if (!takes_prompts(member) || !serves(*member.endpoint, in_.route().model) ||
        std::ranges::find(history_.tried, member.id) != history_.tried.end())
      continue;
    Group& group = groups[kTopology.between(*decode->endpoint, *member.endpoint)];
    Load load = balancer_.load(member.id);
    load += balancer_.load_of_peers(member.id);
    group.workers.push_back(member.id);
    group.least_work = std::min(group.least_work, own_tokens > 0 ? load.prefill_tokens : load.requests);
  }
  std::vector<EndpointId> excluded = far_workers(groups, std::max<std::int64_t>(own_tokens, 1));
  excluded.insert(excluded.end(), history_.tried.begin(), history_.tried.end());
  options.excluded = excluded;
  return balancer_.choose(in_.route(), options);
}

}  // namespace octavo::fleet
