// Makes shell completions from the commands and flags of the program's parser.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace octavo {

// A script for "bash", "zsh" or "fish" that completes commands, flags and the flags' named values. Other
// values are completed as files.
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace octavo
