// prefix-hash-picker (SGLang's prefix_hash): the hash of the prompt's first tokens chooses the endpoint. If
// this endpoint is overloaded, the least loaded endpoint is picked (consistent hashing with bounded loads,
// Mirrokni et al. 2018). The picker has no state.
#include <algorithm>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/pickers/rendezvous.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class PrefixHashPicker : public Picker {
 public:
  std::int64_t prefix_tokens = 256;
  double load_factor = 1.25;  // maximum load, relative to the mean

  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    const RouteRequest& request = cycle.request;
    const std::span<const std::uint32_t> prefix(
        request.tokens.data(), std::min(request.tokens.size(), static_cast<std::size_t>(prefix_tokens)));
    shuffle(ranking, cycle.draws);
    order_by_key(hash_of(std::as_bytes(prefix), hash_of(request.model, 0)), cycle.view, ranking);
    const auto requests = [&](const Score& s) { return cycle.inflight.load(s.endpoint).requests; };
    int total = 0;
    for (const Score& score : ranking) total += requests(score);
    const double most = load_factor * (total + 1) / static_cast<double>(ranking.size());
    if (requests(ranking.front()) > most) std::ranges::stable_sort(ranking, {}, requests);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_prefix_hash_picker(Parameters& parameters, Plugins&) {
  auto picker = make_picker<PrefixHashPicker>(parameters);
  parameters.read("prefixTokenCount", picker->prefix_tokens, 1, 1 << 20);
  parameters.read("loadFactor", picker->load_factor, 1, 1000);
  return picker;
}

}  // namespace octavo::fleet
