// Runs an engine process: the same subcommand with a hidden flag.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "local/runtime_flags.h"

namespace octavo {

struct ChildProcess {
  bool runs_engine = false;
  int rank = 0;
};

// Options of a subcommand that can run its engine in child processes.
struct EngineCommand : RuntimeCommand {
  ChildProcess child;
};

// Adds the hidden flags of child processes. Parsing sets `command`, which must outlive the subcommand.
void add_child_flags(CLI::App& app, EngineCommand& command);

// Returns the arguments of this process.
std::vector<std::string> command_line();

// Returns the command line of the engine process: this one with `more`, kRunEngineFlag and kProcessorsFlag.
std::vector<std::string> engine_command(const EngineOptions& options,
                                        const std::vector<std::string>& more = {});

// Runs the ranks of an engine on a host without a server, one process for each rank. If one ends, it
// restarts all, because the ranks on all hosts end together. Returns an error if processes repeatedly end
// before their first step.
Result<> run_host_of_ranks(const EngineOptions& options);

// Runs engines for a server on another host (remote/engine_meeting.h), and restarts them. Returns an error
// if an engine repeatedly ends, or if the server rejects it.
Result<> run_host_of_engines(RuntimeOptions runtime);

// Runs a rank other than 0 in a process of mpirun.
Result<> run_mpi_rank(RuntimeOptions runtime);

// Runs an engine process: loads the model and serves the parent until the parent ends. Reports a failed
// load to the parent. rank: a rank above 0 runs only this rank. of_another_host: the server is on another
// host. Returns an error if there is no parent process.
Result<> run_engine(RuntimeOptions runtime, int rank, bool of_another_host);

}  // namespace octavo
