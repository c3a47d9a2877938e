// topology-affinity-filter: keeps the prefill endpoints that are nearest to the decode endpoint. If none is
// near, keeps all.
#include <algorithm>
#include <functional>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/topology.h"

namespace octavo::fleet {
namespace {

class TopologyAffinityFilter : public Filter {
 public:
  const TopologyExtractor* topology = nullptr;
  Nearness least = Nearness::host;

  void filter(Cycle& cycle, Candidates& candidates) override {
    const Member* peer = topology ? cycle.view.find(cycle.peer) : nullptr;
    if (!peer) return;
    const auto near = [&](const Member* member) {
      return topology->between(*peer->endpoint, *member->endpoint) <= least;
    };
    if (std::ranges::any_of(candidates, near)) std::erase_if(candidates, std::not_fn(near));
  }
};

}  // namespace

std::unique_ptr<Plugin> make_topology_affinity_filter(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<TopologyAffinityFilter>();
  plugin->topology = find_topology(parameters, plugins);
  std::string least = "host";
  parameters.read("minAffinity", least);
  const auto found = std::ranges::find(kNearnessNames, least);
  if (found == kNearnessNames.end()) parameters.fail("minAffinity", "must be host, rack, zone or region");
  plugin->least = Nearness{static_cast<std::uint8_t>(found - kNearnessNames.begin())};
  return plugin;
}

}  // namespace octavo::fleet
