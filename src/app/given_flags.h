// The engine flags on this command line, for child processes with the same engine.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace octavo {

struct GivenFlag {
  std::string flag;   // "--max-num-seqs"
  std::string value;  // "": not given
};

// Returns the given flags of add_engine_flags() and add_hub_flags(), except the model and the token. Call
// it after parsing.
std::vector<GivenFlag> given_engine_flags(const CLI::App& command);

// Returns the command line of the engine process of a command other than `octavo serve`.
std::vector<std::string> engine_process_command(const CLI::App& command);

}  // namespace octavo
