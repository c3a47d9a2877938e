// Assigns processors and threads to each engine process. Linux allocates memory on the NUMA node of the
// thread that writes it first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

struct NumaOptions {
  bool bind = true;          // whether to bind processes, if there are several processes and several nodes
  std::vector<int> nodes{};  // node of each process; empty: processes are spread evenly
  std::vector<std::string> processors{};  // processor list of each process; empty: the processors of its node
};

// Returns DeviceOptions::processors for this number of processes. nodes: processors of each node
// (base/processors.h). Returns invalid_argument if the number of entries is not the number of processes, if a
// list is malformed, or if a node has no processors.
Result<std::string> share_processors(const NumaOptions& options, int processes,
                                     std::span<const std::vector<int>> nodes);

// Returns the options of one engine process, with its number of threads, and binds the calling thread to its
// processors. rank: rank within the engine. Returns invalid_argument if this process may not use any of the
// processors.
Result<EngineOptions> placed(EngineOptions options, int rank);

}  // namespace octavo
