#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/help_formatter.h"
#include "local/version.h"

namespace {

// Finds the subcommand and rewrites the arguments after it (arguments.h).
octavo::Result<std::vector<std::string>> arguments_of(const CLI::App& program, int argc, char** argv) {
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  const CLI::App* command = &program;
  std::size_t names = 0;
  for (; names < given.size(); ++names) {
    const auto next =
        command->get_subcommands([&](const CLI::App* named) { return named->get_name() == given[names]; });
    if (next.empty()) break;
    command = next.front();
  }
  std::vector<std::string> arguments(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(names));
  if (names == 0) return given;
  TRY(const std::vector<std::string> rest,
      octavo::read_arguments(*command, {given.begin() + static_cast<std::ptrdiff_t>(names), given.end()}));
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  return arguments;
}

// Returns a sentence if an environment variable has set the flag that the error names; "" otherwise.
std::string environment_hint(const CLI::App& command, std::string_view error,
                             const std::vector<std::string>& arguments) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name(), variable = option->get_envname();
    if (variable.empty() || !std::getenv(variable.c_str()) || !error.contains(name)) continue;
    if (std::ranges::any_of(arguments, [&](const std::string& given) { return given.starts_with(name); }))
      continue;
    return fmt::format("The environment variable {} sets {}.\n", variable, name);
  }
  for (const CLI::App* used : command.get_subcommands())
    if (std::string hint = environment_hint(*used, error, arguments); !hint.empty()) return hint;
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              // After this, writing to a closed pipe returns an error and does not kill the process.
              SIG_IGN);
  octavo::Outcome outcome;
  CLI::App program("Octavo: LLM inference and serving in one binary.", "octavo");
  program.set_version_flag("--version", std::string(octavo::kVersion));
  program.require_subcommand(1);
  program.formatter(std::make_shared<octavo::HelpFormatter>());
  program.set_help_all_flag("--help-all", "Print all flags and exit");  // subcommands inherit it
  octavo::add_serve(program, outcome);
  octavo::add_chat(program, outcome);
  octavo::add_generate(program, outcome);
  octavo::add_bench(program, outcome);
  octavo::add_model(program, outcome);
  octavo::add_pick(program, outcome);
  octavo::add_plan(program, outcome);
  octavo::add_hub_commands(program, outcome);
  octavo::add_route(program, outcome);
  octavo::add_session(program, outcome);
  octavo::add_sidecar(program, outcome);
  octavo::add_simulate(program, outcome);
  octavo::add_run_batch(program, outcome);
  octavo::add_replay(program, outcome);
  octavo::add_top(program, outcome);
  octavo::add_tune(program, outcome);
  octavo::add_doctor(program, outcome);
  octavo::add_completion(program, outcome);
  octavo::take_last(program);
  auto arguments = arguments_of(program, argc, argv);
  if (!arguments) {
    outcome.report(arguments.error());
    return outcome.exit_code;
  }
  const std::vector<std::string> given = *arguments;
  std::ranges::reverse(*arguments);  // CLI11 expects the arguments in reverse order.
  try {
    program.parse(std::move(*arguments));
  } catch (const CLI::ParseError& error) {
    const bool requested = error.get_exit_code() == 0;  // --help or --version
    const int code = program.exit(error);
    if (!requested) std::fputs(environment_hint(program, error.what(), given).c_str(), stderr);
    return requested ? code : 2;
  }
  return outcome.exit_code;
}
