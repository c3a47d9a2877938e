#include "fleet/decide/topology.h"

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {

Nearness TopologyExtractor::between(const Endpoint& a, const Endpoint& b) const {
  std::uint8_t level = 0;
  for (const std::string& label : labels) {
    const auto own = a.labels.find(label), other = b.labels.find(label);
    if (own != a.labels.end() && other != b.labels.end() && !own->second.empty() &&
        own->second == other->second)
      break;
    ++level;
  }
  return Nearness{level};
}

const TopologyExtractor* find_topology(Parameters& parameters, Plugins& plugins) {
  std::string name = "topology-extractor";
  parameters.read("topologyProducerName", name);
  return dynamic_cast<const TopologyExtractor*>(plugins.find(name));
}

std::unique_ptr<Plugin> make_topology_extractor(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<TopologyExtractor>();
  constexpr std::array<std::string_view, 4> kFields{"hostname", "rack", "zone", "region"};
  for (std::size_t i = 0; i < kFields.size(); ++i) parameters.read(kFields[i], plugin->labels[i]);
  return plugin;
}

}  // namespace octavo::fleet
