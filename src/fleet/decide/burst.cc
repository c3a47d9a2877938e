#include "fleet/decide/burst.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>

namespace octavo::fleet {
namespace {

using Prompt = std::vector<PrefixKey>;

// Places the prompts of a burst one after another. An endpoint is an index in endpoints_.
class Placement {
 public:
  Placement(std::span<const BurstEndpoint> endpoints, const BurstOptions& options, std::size_t share)
      : endpoints_(endpoints),
        options_(options),
        share_(share),
        room_(options.per_endpoint_max == BurstOptions::kAll
                  ? std::numeric_limits<std::size_t>::max()
                  : static_cast<std::size_t>(options.per_endpoint_max)),
        load_(endpoints.size()),
        held_(endpoints.size()) {}

  void place(const Prompt& prompt, std::span<const std::size_t> requests, std::span<EndpointId> homes) {
    std::vector<std::size_t> given(endpoints_.size());
    // preferred endpoint, used for the prompt's first requests
    std::optional<std::size_t> home = holder(prompt);
    for (std::size_t at = 0; at < requests.size();) {
      const std::size_t to = home.value_or(least_loaded(given));
      home.reset();
      // If all endpoints are full, this endpoint gets one request above the limit.
      const std::size_t room = given[to] < room_ ? room_ - given[to] : 1;
      const std::size_t count = std::min(room, requests.size() - at);
      for (const std::size_t request : requests.subspan(at, count)) homes[request] = endpoints_[to].id;
      if (!options_.by_tokens)
        load_[to] += count;
      else if (given[to] == 0)
        load_[to] += prompt.size() - held(to, prompt);
      given[to] += count;
      at += count;
    }
    for (std::size_t i = 0; i < given.size(); ++i)
      if (given[i] > 0) held_[i].insert(prompt.begin(), prompt.end());
  }

 private:
  // Returns the length of the longest prefix of the prompt, in blocks, that was placed at the endpoint.
  std::size_t held(std::size_t endpoint, const Prompt& prompt) const {
    const auto missing =
        std::ranges::find_if(prompt, [&](PrefixKey key) { return !held_[endpoint].contains(key); });
    return static_cast<std::size_t>(missing - prompt.begin());
  }

  auto order(std::size_t i) const {
    return std::tuple(load_[i], endpoints_[i].running, std::string_view(endpoints_[i].name));
  }

  // Returns the endpoint with the longest prefix of the prompt, among endpoints that have not reached their
  // share.
  std::optional<std::size_t> holder(const Prompt& prompt) const {
    const auto least = static_cast<std::size_t>(options_.shared_blocks_min);
    if (least == 0) return std::nullopt;
    std::optional<std::size_t> best;
    std::size_t most = 0;
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      if (load_[i] >= share_) continue;
      const std::size_t blocks = held(i, prompt);
      if (blocks < least) continue;
      if (best && (blocks < most || (blocks == most && order(*best) < order(i)))) continue;
      best = i;
      most = blocks;
    }
    return best;
  }

  // Returns the least loaded endpoint that has not reached the limit. If all have, returns the least loaded
  // endpoint.
  std::size_t least_loaded(std::span<const std::size_t> given) const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < endpoints_.size(); ++i)
      if (std::tuple(given[i] >= room_, order(i)) < std::tuple(given[best] >= room_, order(best))) best = i;
    return best;
  }

  const std::span<const BurstEndpoint> endpoints_;
  const BurstOptions& options_;
  // load at which an endpoint has reached its share of the burst, in requests or blocks
  const std::size_t share_;
  const std::size_t room_;
  std::vector<std::size_t> load_;
  std::vector<std::unordered_set<PrefixKey>> held_;
};

struct Group {
  const Prompt* prompt;
  std::vector<std::size_t> requests;
};

}  // namespace

std::vector<EndpointId> place_burst(std::span<const Prompt> prompts, std::span<const BurstEndpoint> endpoints,
                                    const BurstOptions& options) {
  std::vector<EndpointId> homes(prompts.size(), kNoEndpoint);
  if (endpoints.empty()) return homes;
  // A key covers all earlier blocks, so two prompts are equal if their numbers of blocks and their last
  // keys are equal.
  std::vector<Group> groups;
  std::map<std::pair<std::size_t, PrefixKey>, std::size_t> group_of;
  const auto shared_min = static_cast<std::size_t>(options.shared_blocks_min);
  // key of block shared_min - 1 -> number of requests whose prompt has this block
  std::map<PrefixKey, std::size_t> beginnings;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Prompt& prompt = prompts[i];
    if (prompt.empty()) continue;
    const auto [found, fresh] = group_of.try_emplace({prompt.size(), prompt.back()}, groups.size());
    if (fresh) groups.push_back({&prompt, {}});
    groups[found->second].requests.push_back(i);
    if (shared_min > 0 && prompt.size() >= shared_min) ++beginnings[prompt[shared_min - 1]];
  }
  std::erase_if(groups, [&](const Group& group) {
    const bool shares = shared_min > 0 && group.prompt->size() >= shared_min &&
                        beginnings[(*group.prompt)[shared_min - 1]] > 1;
    return group.requests.size() == 1 && !shares;
  });
  std::ranges::stable_sort(groups, std::ranges::less(), [](const Group& group) {
    return std::tuple(group.requests.size() == 1, -static_cast<std::int64_t>(group.prompt->size()));
  });
  std::size_t total = 0;
  for (const Group& group : groups) total += options.by_tokens ? group.prompt->size() : group.requests.size();
  Placement placement(endpoints, options, (total + endpoints.size() - 1) / endpoints.size());
  for (const Group& group : groups) placement.place(*group.prompt, group.requests, homes);
  return homes;
}

std::span<const std::uint32_t> BurstPrefixProducer::compared(const RouteRequest& request) const {
  constexpr std::int64_t kBlocksMax = 2048;
  const std::int64_t blocks = options.tokens_max > 0 ? options.tokens_max / options.block_size : kBlocksMax;
  const auto tokens = static_cast<std::size_t>(blocks * options.block_size);
  return std::span(request.tokens).first(std::min(request.tokens.size(), tokens));
}

std::vector<PrefixKey> BurstPrefixProducer::keys(const RouteRequest& request) const {
  std::vector<PrefixKey> keys;
  prefix_keys(first_key(request.model, request.cache_salt), compared(request),
              static_cast<int>(options.block_size), true, keys);
  return keys;
}

void BurstPrefixProducer::produce(const Cycle& cycle, Overlap& overlap) {
  overlap.clear();
  overlap.block_size = static_cast<int>(options.block_size);
  overlap.cached = false;
  const auto size = static_cast<std::size_t>(options.block_size);
  overlap.prompt_blocks = static_cast<std::uint32_t>((compared(cycle.request).size() + size - 1) / size);
  if (cycle.burst_home == kNoEndpoint || overlap.prompt_blocks == 0) return;
  overlap.at(cycle.burst_home).device = overlap.prompt_blocks;
  overlap.holders.push_back(cycle.burst_home);
}

}  // namespace octavo::fleet
