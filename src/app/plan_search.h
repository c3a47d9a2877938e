// octavo plan --devices: finds the cheapest fleet by varying devices, devices per replica and batch sizes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/simulation_flags.h"
#include "fleet/plan/sizing.h"

namespace octavo {

struct SearchFlags {
  // devices to try; empty: only the kind of replica that the other flags describe
  std::vector<std::string> devices;
  std::vector<double> prices;        // price per hour of each device
  std::vector<int> sizes = {1, 2, 4, 8};
  std::vector<int> batches = {64, 256};
  std::vector<std::string> timings;  // measured timings, as DEVICE:SIZE=FILE
  bool pools = false;
};

// Parsing sets `flags`, which must outlive the subcommand. The command must have the flags of a replica.
void add_search_flags(CLI::App& command, SearchFlags& flags, SimulationFlags& replica);

// Prints the results and returns them as JSON.
Result<std::string> run_search(const SearchFlags& flags, const SimulationFlags& replica,
                               const fleet::Trace& trace, const fleet::Slo& slo, int replicas_max);

}  // namespace octavo
