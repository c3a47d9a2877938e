// Draws the results of simulations.
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

// Fraction of requests by TTFT, fraction of tokens by ITL, unfinished requests over time, and cached fraction
// of prompts over time. Each result has a curve.
std::vector<Chart> charts(std::span<const NamedResult> results);

}  // namespace octavo::fleet
