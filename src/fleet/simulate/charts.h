// Draws the results of simulations as charts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleet/simulate/simulation.h"
#include "fleet/simulate/svg_plot.h"

namespace octavo::fleet {

struct NamedResult {
  std::string name;
  SimulationResult result;
};

// Returns four charts with a curve for each result: the distributions of TTFT and ITL, and over time the
// number of unfinished requests and the cached fraction of the prompts.
std::vector<Chart> charts(std::span<const NamedResult> results);

}  // namespace octavo::fleet
