// Which processors each process of an engine runs on, and with how many threads. A process's memory lies
// where its threads touch it first: on their own NUMA node.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

struct NumaOptions {
  bool bind = true;                       // where several processes share several nodes
  std::vector<int> nodes{};               // of each process; empty: evenly many for each
  std::vector<std::string> processors{};  // the list of each process; empty: those of its nodes
};

// EngineOptions::processors for this many processes, where each node has these processors
// (base/processors.h). Errors: invalid_argument, not one entry for each process, a list that is none, a node
// without processors.
Result<std::string> share_processors(const NumaOptions& options, int processes,
                                     std::span<const std::vector<int>> nodes);

// The options of one process of an engine, in which `threads` are its own; binds the calling thread to its
// processors. rank: among the engine's. Errors: invalid_argument, none of its processors may be used.
Result<EngineOptions> placed(EngineOptions options, int rank);

}  // namespace octavo
