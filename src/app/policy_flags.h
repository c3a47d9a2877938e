// Flags of the router's policies.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "fleet/decide/policies.h"
#include "fleet/simulate/simulation.h"

namespace octavo {

// Values of --policy, and its help text.
std::vector<std::string> policy_names();
std::string policies_text();

// Adds --cache-threshold and others. `options` must outlive the subcommand.
void add_policy_flags(CLI::App& command, const std::string& group, fleet::PolicyOptions& options);
void add_policy_flags(CLI::App& command, const std::string& group, fleet::SimulationOptions& options);

}  // namespace octavo
