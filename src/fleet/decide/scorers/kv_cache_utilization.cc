// kv-cache-utilization-scorer: prefers endpoints with much free KV cache.
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class KvCacheUtilizationScorer : public Scorer {
 public:
  void score(Cycle&, std::span<const Member* const> candidates, std::span<double> scores) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) scores[i] = 1 - candidates[i]->state.kv_usage;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_kv_cache_utilization_scorer(Parameters&, Plugins&) {
  return std::make_unique<KvCacheUtilizationScorer>();
}

}  // namespace octavo::fleet
