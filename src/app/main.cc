#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "app/commands.h"
#include "app/version.h"

namespace octavo {

void Outcome::report(const Error& error) {
  fmt::print(stderr, "octavo: {}{}{}\n", error.field, error.field.empty() ? "" : ": ", error.message);
  const bool callers = error.code == ErrorCode::invalid_argument || error.code == ErrorCode::not_found ||
                       error.code == ErrorCode::unsupported || error.code == ErrorCode::corrupt;
  exit_code = callers ? 2 : 1;
}

}  // namespace octavo

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // a reader that went away is an error of a write, not the end of the program
  octavo::Outcome outcome;
  CLI::App program("Octavo: LLM inference and serving in one binary.");
  program.set_version_flag("--version", std::string(octavo::kVersion));
  program.require_subcommand(1);
  program.get_formatter()->column_width(42);
  octavo::add_serve(program, outcome);
  octavo::add_chat(program, outcome);
  octavo::add_generate(program, outcome);
  octavo::add_bench(program, outcome);
  octavo::add_model(program, outcome);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    const int code = program.exit(error);
    return asked ? code : 2;
  }
  return outcome.exit_code;
}
