// Charts of simulations.
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

// Returns four charts with a curve for each result: fraction of requests by TTFT, fraction of tokens by ITL,
// unfinished requests over time, cached fraction of prompts over time.
std::vector<Chart> charts(std::span<const NamedResult> results);

}  // namespace octavo::fleet
