// The part of Forwarding that chooses a prefill worker near the decode worker, which fetches the KV blocks
// of the prompt. Farther prefill workers are used if the near ones have much more work.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "fleet/decide/eligible.h"
#include "fleet/decide/topology.h"
#include "fleet/route/forwarding.h"

namespace octavo::fleet {
namespace {

bool takes_prompts(const Member& member) {
  return member.endpoint->role == Role::prefill && member.state.availability == Availability::available;
}

// Returns whether any prefill worker has a known location.
bool has_locations(const FleetView& view, const TopologyExtractor& topology) {
  return std::ranges::any_of(view.members, [&](const Member& member) {
    const auto& labels = member.endpoint->labels;
    return takes_prompts(member) && std::ranges::any_of(topology.labels, [&](const std::string& name) {
             return labels.contains(name);
           });
  });
}

// Prefill workers with the same distance to the decode worker.
struct Group {
  std::vector<EndpointId> workers = {};
  // work of the worker with the least work
  std::int64_t least_work = std::numeric_limits<std::int64_t>::max();
};

// Returns the prefill workers to exclude. A group is excluded if a nearer group has at most own_work more
// work. The work of a group is Group::least_work, and own_work is the work of the prompt.
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

// If locations are known, chooses the decode worker first, and then a prefill worker near it.
std::expected<Choice, Refusal> Forwarding::choose_prefill() {
  static const TopologyExtractor kTopology;
  const auto view = balancer_.fleet().view();
  ChoiceOptions options = choice_options(Role::prefill);
  if (!has_locations(*view, kTopology)) return balancer_.choose(in_.route(), options);
  if (auto decode = balancer_.choose(in_.route(), choice_options(Role::decode))) {
    // the decode worker is booked again when the prompt is computed
    balancer_.ended(decode->booking, Outcome::neither);
    owner_ = decode->endpoint->name;
  }
  const Member* decode = owner_.empty() ? nullptr : view->find(owner_);
  if (!decode) return balancer_.choose(in_.route(), options);
  // Without a tokenizer, the work of a worker is its number of requests.
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
  // The first attempt excludes paused workers. If no near worker is left, or all near workers refuse
  // requests, far workers are used, too.
  const bool rested = std::exchange(options.rested, true);
  if (auto near = balancer_.choose(in_.route(), options)) return near;
  options.rested = rested;
  options.excluded = history_.tried;
  return balancer_.choose(in_.route(), options);
}

}  // namespace octavo::fleet
