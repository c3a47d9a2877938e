// Assigns processors and threads to each engine process. Linux allocates memory on the NUMA node of the
// thread that writes it first, so a process should stay on one node.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

struct NumaOptions {
  bool bind = true;  // whether to bind processes, if there are several processes and several NUMA nodes
  std::vector<int> nodes{};  // NUMA node of each process; empty: processes are spread evenly
  // processor list of each process; empty: all processors of the node
  std::vector<std::string> processors{};
};

// Returns DeviceOptions::processors for `processes` processes. `nodes` has the processors of each NUMA node
// (base/processors.h). Returns invalid_argument if the number of entries differs from `processes`, if a
// list is malformed, or if a node has no processors.
Result<std::string> share_processors(const NumaOptions& options, int processes,
                                     std::span<const std::vector<int>> nodes);

// Binds the calling thread to the processors of one engine process. `rank` is the rank within the engine.
// Returns the options with the number of threads of this process, or invalid_argument if the process may
// not use any of the processors.
Result<EngineOptions> placed(EngineOptions options, int rank);

}  // namespace octavo
