// Runs the engine's process: this program with an additional flag.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// This process's command line with kRunEngineFlag and kProcessorsFlag.
std::vector<std::string> engine_command(const EngineOptions& options);

// Runs a host that has ranks of an engine, but no server. Starts a process for each rank. If one ends,
// restarts all, since the ranks of all hosts end together. Errors: a process keeps ending before its first
// step.
Result<> run_host_of_ranks(const EngineOptions& options);

// Runs a host whose engines belong to another host's server (remote/engine_meeting.h). Starts them, and
// restarts those that end. Errors: an engine keeps ending, or does not belong to that server.
Result<> run_host_of_engines(RuntimeOptions runtime);

// Runs a rank other than 0 in a process that mpirun has started.
Result<> run_mpi_rank(RuntimeOptions runtime);

// Runs the engine's process: loads the engine from the model's path, and serves the parent process until that
// ends. Errors: there is no parent process. A failed load is reported to the parent. rank: if not 0, runs
// this rank instead. of_another_host: serves a server on another host.
Result<> run_engine(RuntimeOptions runtime, int rank, bool of_another_host);

}  // namespace octavo
