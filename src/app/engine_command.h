// The engine's process: this program once more, with one flag more.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime.h"

namespace octavo {

inline constexpr const char* kRunEngineFlag = "--run-engine";
// With it, beside kRunEngineFlag: the process of a rank of that engine.
inline constexpr const char* kRunRankFlag = "--run-rank";

// This process's command line with kRunEngineFlag and kProcessorsFlag.
std::vector<std::string> engine_command(const EngineOptions& options);

// What a host does that has ranks of an engine and no server: starts a process for each, and again when it has ended,
// as the ranks of all hosts end together. Errors: one ends again and again before it computes anything.
Result<> run_host_of_ranks(const EngineOptions& options);

// What a host does that has engines of a server on another one (remote/engine_meeting.h): starts them, and
// again when they have ended. Errors: one ends again and again, or does not belong to that server.
Result<> run_host_of_engines(RuntimeOptions runtime);

// The rank of a process that mpirun has started, other than 0.
Result<> run_mpi_rank(RuntimeOptions runtime);

// What that process does: loads the engine, whose model is given by its path, and serves the process that
// started it, until that goes. Errors: nobody is there to serve. That the engine does not load is told to
// whoever waits for it. rank: not 0: runs that rank instead. of_another_host: whom it serves is a server on
// another host.
Result<> run_engine(RuntimeOptions runtime, int rank, bool of_another_host);

}  // namespace octavo
