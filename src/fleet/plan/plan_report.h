// Writes the results of `octavo plan` as text and as JSON.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleet/plan/scaling.h"
#include "fleet/plan/sizing.h"

namespace octavo::fleet {

struct ScalingPlan {
  std::string predictor;
  ScalingRules rules;
  std::vector<Capacity> capacity;
  std::vector<WindowPlan> windows;
  Trial trial;
};

struct Plan {
  Slo slo;
  Sizing sizing;
  std::optional<ScalingPlan> scaling = {};
};

boost::json::object slo_json(const Slo& slo);
boost::json::object plan_json(const Plan& plan);

// Returns text with a row for each simulation, the capacities of fleets, and the windows in which the
// number of replicas changes.
std::string plan_text(const Plan& plan);

}  // namespace octavo::fleet
