// Simulates several autoscalers with the same traffic, and compares whether they meet the SLO, and their
// cost.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "fleet/plan/autoscaler.h"
#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct Contender {
  std::string name;
  Trial trial;
  double hours() const { return trial.figures.at("replica_hours").to_number<double>(); }
};

struct ComparisonRules {
  AutoscalerRules autoscaler = {};  // its latency limits are replaced by those of the SLO
  std::int64_t interval_us = 5'000'000;
};

// progress: current contender, finished requests, all requests.
using ContenderProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

// Compares in this order:
// 1. The oracle: the fewest replica hours that meet the SLO, if the fleet follows each window's load.
// 2. The smallest fixed fleet.
// 3. The autoscaler.
// 4. An HPA on requests per replica, whose target is the highest of 1, 2, 4 ... that meets the SLO, or 1.
// Replicas that start also count as cost. Errors: those of simulate(); a fixed fleet of replicas_max misses
// the SLO (field "slo").
Result<std::vector<Contender>> compare_scalers(const SimulationOptions& options, const Trace& trace,
                                               const Slo& slo, const ComparisonRules& rules,
                                               const CapacityTable& capacity, const Predictor& predictor,
                                               const ContenderProgress& progress);

std::string comparison_text(const std::vector<Contender>& contenders);
boost::json::object comparison_json(const std::vector<Contender>& contenders);

}  // namespace octavo::fleet
