// The subcommands of `octavo`. Each function adds one; its callback runs the subcommand and sets the exit
// code.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/error.h"

namespace octavo {

struct Outcome {
  int exit_code = 0;

  // Prints the error to standard error. The exit code is 2 for mistakes of the user, otherwise 1.
  void report(const Error& error);

  // The command calls `run` with its options and reports errors. It does nothing if one of its subcommands
  // has run.
  template <class Options, class Run>
  void runs(CLI::App& command, std::shared_ptr<Options> options, Run run) {
    command.callback([this, &command, options = std::move(options), run] {
      if (!command.get_subcommands().empty()) return;
      if (const Result<> done = run(*options); !done) report(done.error());
    });
  }
};

void add_generate(CLI::App& program, Outcome& outcome);
void add_chat(CLI::App& program, Outcome& outcome);
void add_serve(CLI::App& program, Outcome& outcome);
void add_bench(CLI::App& program, Outcome& outcome);
void add_bench_ops(CLI::App& bench, Outcome& outcome);
void add_bench_serve(CLI::App& bench, Outcome& outcome);
void add_bench_sweep(CLI::App& bench, Outcome& outcome);
void add_model(CLI::App& program, Outcome& outcome);
void add_pick(CLI::App& program, Outcome& outcome);
void add_plan(CLI::App& program, Outcome& outcome);
void add_plan_live(CLI::App& plan, Outcome& outcome);
void add_plan_compare(CLI::App& plan, Outcome& outcome);
void add_plan_pools(CLI::App& plan, Outcome& outcome);
void add_hub_commands(CLI::App& program, Outcome& outcome);
void add_route(CLI::App& program, Outcome& outcome);
void add_sidecar(CLI::App& program, Outcome& outcome);
void add_session(CLI::App& program, Outcome& outcome);
void add_simulate(CLI::App& program, Outcome& outcome);
void add_calibrate(CLI::App& simulate, Outcome& outcome);
void add_top(CLI::App& program, Outcome& outcome);
void add_tune(CLI::App& program, Outcome& outcome);
void add_doctor(CLI::App& program, Outcome& outcome);
void add_completion(CLI::App& program, Outcome& outcome);
void add_run_batch(CLI::App& program, Outcome& outcome);
void add_replay(CLI::App& program, Outcome& outcome);

}  // namespace octavo
