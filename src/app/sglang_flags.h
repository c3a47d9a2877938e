// Flags of SGLang's launch_router that change nothing here.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo {

// Each takes its values, and a line of the log says what does the same here.
void add_sglang_flags(CLI::App& command);

}  // namespace octavo
