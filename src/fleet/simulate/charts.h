// A simulation as pictures.
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

// Share of requests by TTFT, share of tokens by ITL, unfinished requests and cached share of prompts over
// time; a curve for each result.
std::vector<Chart> charts(std::span<const NamedResult> results);

}  // namespace octavo::fleet
