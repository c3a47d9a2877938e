// Shows for which prompt and answer lengths separate prefill replicas help: simulates the rate that n
// replicas serve within an SLO, with one pool and with prefill and decode pools.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolMapRules {
  int replicas = 8;  // replicas of all pools, at least 2
  std::vector<int> prompt_tokens = {256, 1024, 4096, 16384};
  std::vector<int> answer_tokens = {16, 64, 256, 1024};
  double seconds = 30;  // simulated seconds at each rate; must be long compared with the SLO's limits
};

struct PoolCell {
  int prompt_tokens = 0, answer_tokens = 0;
  // Maximum rates that meet the SLO in requests/s, with one pool and with two; 0: no rate does.
  double together = 0, apart = 0;
  int prefill_replicas = 0;  // prefill replicas in the best split

  double gain() const { return together > 0 ? apart / together : 0; }
};

// Prompts have no common prefixes, lengths vary by a fifth, and arrivals are Poisson. Reports progress in
// cells. Errors: those of simulate().
Result<std::vector<PoolCell>> map_pools(
    SimulationOptions options, const Slo& slo, const PoolMapRules& rules,
    const std::function<void(std::size_t done, std::size_t all)>& progress);

std::string pool_map_text(const std::vector<PoolCell>& cells);
boost::json::object pool_map_json(const std::vector<PoolCell>& cells, const PoolMapRules& rules);
// Draws the map as SVG. A cell shows the rate with separate prefill replicas divided by the rate without.
std::string pool_map_svg(const std::string& title, const std::vector<PoolCell>& cells,
                         const PoolMapRules& rules);

}  // namespace octavo::fleet
