// Flags of SGLang's launch_router that have no effect in Octavo.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo {

// Adds the flags. Each accepts its values and logs the replacement in Octavo, or is refused by name.
void add_sglang_flags(CLI::App& command);

}  // namespace octavo
