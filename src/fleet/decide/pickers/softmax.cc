// softmax-picker: picks an endpoint at random, with a probability proportional to exp(-(best - score) /
// ((best - worst) * temperature)), like NVIDIA Dynamo's router with costs. The remaining endpoints follow
// by score. Temperature 0 picks the best endpoint.
#include <cmath>

#include "fleet/decide/pickers/ranking.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class SoftmaxPicker : public Picker {
 public:
  double temperature = 0;

  void pick(Cycle& cycle, std::vector<Score>& ranking) override {
    sort_by_score(ranking, cycle.draws);
    const double best = ranking.front().total;
    const double spread = (best - ranking.back().total) * temperature;
    if (spread <= 0) return;
    const auto weight = [&](const Score& score) { return std::exp((score.total - best) / spread); };
    double total = 0;
    for (const Score& score : ranking) total += weight(score);
    double left = cycle.draws.unit() * total;
    auto drawn = ranking.begin();
    while (drawn + 1 != ranking.end() && (left -= weight(*drawn)) > 0) ++drawn;
    std::rotate(ranking.begin(), drawn, drawn + 1);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_softmax_picker(Parameters& parameters, Plugins&) {
  auto plugin = make_picker<SoftmaxPicker>(parameters);
  parameters.read("temperature", plugin->temperature, 0, 1000);
  return plugin;
}

}  // namespace octavo::fleet
