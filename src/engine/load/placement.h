// Processors and number of threads of each engine process. Linux places memory on the NUMA node of the
// thread that touches it first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

struct NumaOptions {
  bool bind = true;                       // bind processes if several share several nodes
  std::vector<int> nodes{};               // node of each process; empty: spread the processes evenly
  std::vector<std::string> processors{};  // list for each process; empty: those of its node
};

// Returns DeviceOptions::processors for this number of processes. nodes: processors of each node
// (base/processors.h). Errors: invalid_argument, the number of entries is not the number of processes, a
// list is malformed, or a node has no processors.
Result<std::string> share_processors(const NumaOptions& options, int processes,
                                     std::span<const std::vector<int>> nodes);

// Returns the options of one engine process, with its number of threads, and binds the calling thread to
// its processors. rank: rank within the engine. Errors: invalid_argument, this process may use none of the
// processors.
Result<EngineOptions> placed(EngineOptions options, int rank);

}  // namespace octavo
