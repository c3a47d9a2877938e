// Shows for which prompt and output lengths separate prefill replicas help. Simulates which rate n replicas
// serve within an SLO, with one pool and with separate prefill and decode pools.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolMapRules {
  int replicas = 8;  // number of replicas in all pools together, at least 2
  std::vector<int> prompt_tokens = {256, 1024, 4096, 16384};
  std::vector<int> answer_tokens = {16, 64, 256, 1024};
  double seconds = 30;  // simulated seconds at each rate; must be much longer than the SLO's limits
};

struct PoolCell {
  int prompt_tokens = 0, answer_tokens = 0;
  // Highest rates in requests/s that meet the SLO, with one pool and with separate pools. 0: even the lowest
  // rate misses the SLO.
  double together = 0, apart = 0;
  int prefill_replicas = 0;

  double gain() const { return together > 0 ? apart / together : 0; }
};

// Simulated prompts have no common prefixes, lengths vary by a fifth, and arrivals are Poisson. `progress`
// counts cells. Returns the errors of simulate().
Result<std::vector<PoolCell>> map_pools(
    SimulationOptions options, const Slo& slo, const PoolMapRules& rules,
    const std::function<void(std::size_t done, std::size_t all)>& progress);

std::string pool_map_text(const std::vector<PoolCell>& cells);
boost::json::object pool_map_json(const std::vector<PoolCell>& cells, const PoolMapRules& rules);
// Draws the map as SVG. A cell shows the rate with separate pools divided by the rate with one pool.
std::string pool_map_svg(const std::string& title, const std::vector<PoolCell>& cells,
                         const PoolMapRules& rules);

}  // namespace octavo::fleet
