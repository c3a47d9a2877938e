// Shows for which prompt and answer lengths separate prefill replicas pay off: the load that n replicas serve
// within an SLO, all with both roles or divided into prefill and decode; by simulation.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct PoolMapRules {
  int replicas = 8;  // in total, 2 or more
  std::vector<int> prompt_tokens = {256, 1024, 4096, 16384};
  std::vector<int> answer_tokens = {16, 64, 256, 1024};
  double seconds = 30;  // simulated time of each rate: long compared with the SLO's limits
};

struct PoolCell {
  int prompt_tokens = 0, answer_tokens = 0;
  // The highest rates in requests a second that meet the SLO; 0 if no rate does.
  double together = 0, apart = 0;
  int prefill_replicas = 0;  // of the best split

  double gain() const { return together > 0 ? apart / together : 0; }
};

// Prompts share nothing; lengths vary by a fifth; arrivals are Poisson. Reports progress as `done` of `all`
// cells. Errors: those of simulate().
Result<std::vector<PoolCell>> map_pools(
    SimulationOptions options, const Slo& slo, const PoolMapRules& rules,
    const std::function<void(std::size_t done, std::size_t all)>& progress);

std::string pool_map_text(const std::vector<PoolCell>& cells);
boost::json::object pool_map_json(const std::vector<PoolCell>& cells, const PoolMapRules& rules);
// As a picture: throughput with separate prefill replicas, divided by the throughput without.
std::string pool_map_svg(const std::string& title, const std::vector<PoolCell>& cells,
                         const PoolMapRules& rules);

}  // namespace octavo::fleet
