// lora-affinity-scorer: prefers endpoints that have loaded the request's adapter, then endpoints with a
// free adapter slot, and then endpoints where requests wait for the adapter.
#include <algorithm>
#include <utility>

#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class LoraAffinityScorer : public Scorer {
 public:
  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = affinity(candidates[i]->state, cycle.request.model);
  }

 private:
  static double affinity(const EndpointState& state, const std::string& model) {
    if (!state.adapters) return 0;
    const AdapterState& adapters = *state.adapters;
    const auto has = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, model) != names.end();
    };
    if (has(adapters.active)) return 1;
    if (std::cmp_less(adapters.active.size() + adapters.waiting.size(), adapters.active_max)) return 0.8;
    return has(adapters.waiting) ? 0.6 : 0;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_lora_affinity_scorer(Parameters&, Plugins&) {
  return std::make_unique<LoraAffinityScorer>();
}

}  // namespace octavo::fleet
