// Common flags of `octavo simulate` and `octavo plan`: the traffic, and the properties of a replica.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "fleet/simulate/simulation.h"

namespace octavo {

struct SimulationFlags {
  fleet::SimulationOptions options;
  std::string trace;
  std::string traffic;
  int trace_block_size = 512;
  fleet::TraceChanges changes;

  std::string timing;
  std::string model = "qwen3-32b";
  std::string device = "h100";
  int tensor_parallel_size = 2;
  int prefill_tensor_parallel_size = 0;  // 0: that of decode replicas
  double memory_share = 0.9;
  int max_queued = 4096;
};

// Parsing sets `flags`, which must outlive the subcommand.
void add_traffic_flags(CLI::App& command, SimulationFlags& flags);
void add_replica_flags(CLI::App& command, SimulationFlags& flags);
// Adds the flags of separate prefill replicas, except their number.
void add_prefill_flags(CLI::App& command, const std::string& group, SimulationFlags& flags);

// Computes timing and cache size of decode and prefill replicas from the figures of model and device,
// unless flags set them.
Result<> describe_replica(SimulationFlags& flags);
Result<fleet::Trace> read_traffic(SimulationFlags& flags);

}  // namespace octavo
