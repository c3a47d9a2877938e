// octavo plan --devices: finds the cheapest fleet. Tries devices, numbers of devices in a replica, and batch
// sizes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/simulation_flags.h"
#include "fleet/plan/sizing.h"

namespace octavo {

struct SearchFlags {
  std::vector<std::string> devices;  // empty: only one kind of replica is planned
  std::vector<double> prices;        // price of each device for an hour
  std::vector<int> sizes = {1, 2, 4, 8};
  std::vector<int> batches = {64, 256};
  bool pools = false;
};

// Adds the flags; parsing sets them, and they must outlive the subcommand. The command has the flags of a
// replica.
void add_search_flags(CLI::App& command, SearchFlags& flags, SimulationFlags& replica);

// Prints the results and returns them as JSON.
Result<std::string> run_search(const SearchFlags& flags, const SimulationFlags& replica,
                               const fleet::Trace& trace, const fleet::Slo& slo, int replicas_max);

}  // namespace octavo
