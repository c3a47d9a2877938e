// Runs the engine's process: this program with one more flag.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

// Returns this process's command line with kRunEngineFlag and kProcessorsFlag.
std::vector<std::string> engine_command(const EngineOptions& options);

// Runs a host with ranks of an engine and no server: one process for each rank. If one ends, restarts all,
// since the ranks of all hosts end together. Errors: a process repeatedly ends before its first step.
Result<> run_host_of_ranks(const EngineOptions& options);

// Runs a host whose engines belong to the server of another host (remote/engine_meeting.h). Restarts engines
// that end. Errors: an engine repeatedly ends, or does not belong to that server.
Result<> run_host_of_engines(RuntimeOptions runtime);

// Runs a rank above 0 in a process of mpirun.
Result<> run_mpi_rank(RuntimeOptions runtime);

// Runs the engine's process: loads the model, and serves the parent process until the parent ends. Reports a
// failed load to the parent. rank: above 0: runs this rank. of_another_host: the server is on another host.
// Errors: there is no parent process.
Result<> run_engine(RuntimeOptions runtime, int rank, bool of_another_host);

}  // namespace octavo
