// The router's policies on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "fleet/decide/policies.h"

namespace octavo {

// Values of --policy, and its help.
std::vector<std::string> policy_names();
std::string policies_text();

// Adds --cache-threshold and others; parsing fills `options`, which must outlive the subcommand.
void add_policy_flags(CLI::App& command, const std::string& group, fleet::PolicyOptions& options);

}  // namespace octavo
