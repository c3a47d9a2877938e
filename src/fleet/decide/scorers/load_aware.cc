// load-aware-scorer: the score falls from 0.5 with an empty queue to 0 with `threshold` or more waiting
// requests.
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class LoadAwareScorer : public Scorer {
 public:
  std::int64_t threshold = 128;

  void score(Cycle&, std::span<const Member* const> candidates, std::span<double> scores) override {
    const auto full = static_cast<double>(threshold);
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = 0.5 * (1 - std::min<double>(candidates[i]->state.waiting, full) / full);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_load_aware_scorer(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<LoadAwareScorer>();
  parameters.read("threshold", plugin->threshold, 1, 1'000'000'000);
  return plugin;
}

}  // namespace octavo::fleet
