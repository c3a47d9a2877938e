// prefix-cache-scorer: scores by the cached fraction of the prompt and, if configured, by the cached
// length.
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

class PrefixCacheScorer : public Scorer {
 public:
  std::size_t producer = 0;  // index in Cycle::overlaps
  double length_weight = 0;
  std::int64_t length_scale_tokens = 8192;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Overlap& overlap = cycle.overlaps[producer];
    if (overlap.prompt_blocks == 0) return;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double matched = overlap.of(candidates[i]->id).blocks();
      const double length =
          std::min(1.0, matched * overlap.block_size / static_cast<double>(length_scale_tokens));
      scores[i] = length_weight * length * length + (1 - length_weight) * overlap.share(candidates[i]->id);
    }
  }
};

}  // namespace

std::unique_ptr<Plugin> make_prefix_cache_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<PrefixCacheScorer>();
  std::string producer = "approx-prefix-cache-producer";
  parameters.read("prefixMatchInfoProducerName", producer);
  parameters.read("matchLengthWeight", plugin->length_weight, 0, 1);
  parameters.read("matchLengthScaleTokens", plugin->length_scale_tokens, 1, std::int64_t{1} << 32);
  plugin->producer = plugins.producer(producer, parameters, "prefixMatchInfoProducerName");
  return plugin;
}

}  // namespace octavo::fleet
