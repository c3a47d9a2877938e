// topology-extractor: reads the location of an endpoint (such as zone, rack and host) from its labels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "fleet/decide/plugin.h"

namespace octavo::fleet {

enum class Nearness : std::uint8_t { host, rack, zone, region, none };
inline constexpr std::array<std::string_view, 4> kNearnessNames{"host", "rack", "zone", "region"};

class Parameters;
class Plugins;

class TopologyExtractor : public Plugin {
 public:
  std::array<std::string, 4> labels = {"kubernetes.io/hostname", "topology.kubernetes.io/rack",
                                       "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};

  // Returns how near two endpoints are. Skips labels that one of the endpoints lacks.
  Nearness between(const Endpoint& a, const Endpoint& b) const;
};

// Returns the plugin that the parameter topologyProducerName names. Returns null if there is no such plugin.
// Then no endpoint counts as near.
const TopologyExtractor* find_topology(Parameters& parameters, Plugins& plugins);

}  // namespace octavo::fleet
