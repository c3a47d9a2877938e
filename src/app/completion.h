// Generates shell completions from the commands and flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace octavo {

// shell: "bash", "zsh" or "fish". The script completes commands, flags and named values; it completes all
// other values as files.
std::string completion_script(const CLI::App& program, std::string_view shell);

}  // namespace octavo
