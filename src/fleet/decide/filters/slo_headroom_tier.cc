// slo-headroom-tier-filter: keeps the endpoints that are predicted to meet the request's latency limits, if
// there are any. With the probability epsilonExploreNeg it keeps the remaining endpoints instead, so that
// their predictions stay current.
#include <algorithm>

#include "fleet/decide/latency.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class SloHeadroomTierFilter : public Filter {
 public:
  const LatencyPredictor* predictor = nullptr;
  double exploration = 0.01;

  void filter(Cycle& cycle, Candidates& candidates) override {
    if (candidates.size() < 2) return;
    // An endpoint without a prediction counts as one that misses the limits.
    const auto keeps = [&](const Member* member) {
      const auto room = predictor->headroom(cycle, *member);
      return room && room->positive();
    };
    const auto others = std::ranges::stable_partition(candidates, keeps);
    if (others.empty() || others.begin() == candidates.begin()) return;
    if (cycle.draws.unit() < exploration)
      candidates.erase(candidates.begin(), others.begin());
    else
      candidates.erase(others.begin(), others.end());
  }
};

}  // namespace

std::unique_ptr<Plugin> make_slo_headroom_tier_filter(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<SloHeadroomTierFilter>();
  parameters.read("epsilonExploreNeg", plugin->exploration, 0, 1);
  plugin->predictor = find_predictor(parameters, plugins);
  return plugin;
}

}  // namespace octavo::fleet
