// The engine's process: this program again, with one more flag.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// This process's command line with kRunEngineFlag and kProcessorsFlag.
std::vector<std::string> engine_command(const EngineOptions& options);

// Runs a host that has ranks of an engine and no server: starts a process for each rank and restarts all when
// one ends, since the ranks of all hosts end together. Errors: a process keeps ending before it computes
// anything.
Result<> run_host_of_ranks(const EngineOptions& options);

// Runs a host that has engines of another host's server (remote/engine_meeting.h): starts them and restarts
// ended ones. Errors: one keeps ending, or does not belong to that server.
Result<> run_host_of_engines(RuntimeOptions runtime);

// Runs the rank of a process that mpirun has started, other than 0.
Result<> run_mpi_rank(RuntimeOptions runtime);

// Runs the engine's process: loads the engine from the model's path, and serves the parent process until it
// ends. Errors: no parent to serve. A failed load is reported to the waiting process. rank: if not 0, runs
// that rank instead. of_another_host: serves a server on another host.
Result<> run_engine(RuntimeOptions runtime, int rank, bool of_another_host);

}  // namespace octavo
