// Shell completions, from the same commands and flags that the program parses.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace octavo {

// A script for "bash", "zsh" or "fish" that completes commands, flags and flags' named values. Other values
// complete as files.
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace octavo
