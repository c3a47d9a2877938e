// topology-affinity-scorer: prefers endpoints near the decode endpoint. The scores are proportional to
// typical bandwidths.
#include <algorithm>
#include <array>

#include "fleet/decide/plugin_table.h"
#include "fleet/decide/topology.h"

namespace octavo::fleet {
namespace {

constexpr std::array<double, 5> kScores{1, .2, .05, .02, 0};  // [Nearness]

class TopologyAffinityScorer : public Scorer {
 public:
  const TopologyExtractor* topology = nullptr;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Member* peer = topology ? cycle.view.find(cycle.peer) : nullptr;
    if (!peer) return void(std::ranges::fill(scores, 0));
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] =
          kScores[static_cast<std::size_t>(topology->between(*peer->endpoint, *candidates[i]->endpoint))];
  }
};

}  // namespace

std::unique_ptr<Plugin> make_topology_affinity_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<TopologyAffinityScorer>();
  plugin->topology = find_topology(parameters, plugins);
  return plugin;
}

}  // namespace octavo::fleet
