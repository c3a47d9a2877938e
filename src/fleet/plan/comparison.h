// Compares autoscalers by simulation over the same traffic: the SLO they reach, and their cost.
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
  AutoscalerRules autoscaler = {};  // its time limits are replaced by the SLO's
  std::int64_t interval_us = 5'000'000;
};

// progress: the current contender, finished requests, all requests.
using ContenderProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

// First the oracle: the fewest replica hours that meet the SLO if the number of replicas follows each
// window's load in proportion, without delay. Then the smallest fixed fleet; the autoscaler; and an HPA on
// requests per replica, with the highest target of 1, 2, 4 ... that meets the SLO, or 1. Starting replicas
// cost, too. Errors: those of simulate(); a fixed fleet of replicas_max does not meet the SLO (field "slo").
Result<std::vector<Contender>> compare_scalers(const SimulationOptions& options, const Trace& trace,
                                               const Slo& slo, const ComparisonRules& rules,
                                               const CapacityTable& capacity, const Predictor& predictor,
                                               const ContenderProgress& progress);

std::string comparison_text(const std::vector<Contender>& contenders);
boost::json::object comparison_json(const std::vector<Contender>& contenders);

}  // namespace octavo::fleet
