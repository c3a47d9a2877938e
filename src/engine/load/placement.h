// Processors and thread count of each engine process. Memory is on the NUMA node of the thread that touches
// it first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

struct NumaOptions {
  bool bind = true;                       // only if several processes share several nodes
  std::vector<int> nodes{};               // node of each process; empty: processes are spread evenly
  std::vector<std::string> processors{};  // processor list of each process; empty: those of its nodes
};

// EngineOptions::processors for this number of processes; nodes: processors of each node
// (base/processors.h). Errors: invalid_argument, not one entry per process, a malformed list, a node without
// processors.
Result<std::string> share_processors(const NumaOptions& options, int processes,
                                     std::span<const std::vector<int>> nodes);

// Options of one process of an engine, with `threads` for this process; binds the calling thread to its
// processors. rank: within the engine. Errors: invalid_argument, none of its processors may be used.
Result<EngineOptions> placed(EngineOptions options, int rank);

}  // namespace octavo
