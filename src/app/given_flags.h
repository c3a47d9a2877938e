// The engine's flags that a command line gave, for programs that this program starts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octavo {

struct GivenFlag {
  std::string flag;   // "--max-num-seqs"
  std::string value;  // "": the flag is not given
};

// Those of add_engine_flags() and add_hub_flags() except the model and the token, after the command was
// parsed.
std::vector<GivenFlag> given_engine_flags(const CLI::App& command);

// The command of an engine's process (RuntimeOptions::engine_command) for a command other than `octavo
// serve`.
std::vector<std::string> engine_process_command(const CLI::App& command);

}  // namespace octavo
