// Simulates several autoscalers with the same traffic, and compares their cost and whether they meet the
// SLO.
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
  AutoscalerRules autoscaler = {};  // the limits of `slo` replace the latency limits in these rules
  std::int64_t interval_us = 5'000'000;
};

// Arguments: the name of the current contender, the number of finished requests, and the number of all
// requests.
using ContenderProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

// Compares four contenders, and returns them in this order:
// 1. The oracle, which knows each window's load in advance and uses the fewest replica hours that meet the
// SLO.
// 2. The smallest fixed fleet.
// 3. The autoscaler.
// 4. A HorizontalPodAutoscaler on requests per replica. Its target is the highest of 1, 2, 4 ... that meets
// the SLO, or 1.
// The cost includes replicas that are starting. Returns an error on "slo" if a fixed fleet of replicas_max
// misses the SLO. Also returns the errors of simulate().
Result<std::vector<Contender>> compare_scalers(const SimulationOptions& options, const Trace& trace,
                                               const Slo& slo, const ComparisonRules& rules,
                                               const CapacityTable& capacity, const Predictor& predictor,
                                               const ContenderProgress& progress);

std::string comparison_text(const std::vector<Contender>& contenders);
boost::json::object comparison_json(const std::vector<Contender>& contenders);

}  // namespace octavo::fleet
