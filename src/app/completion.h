// Shell completions, made from the program's commands and flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace octavo {

// Returns a script for "bash", "zsh" or "fish" that completes commands, flags and named values. Other values
// are completed as files.
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace octavo
