// Accepts flags of SGLang's router and of vllm-router that have no effect in Octavo.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo {

// Each of these flags either logs what to use in Octavo instead, or is an error.
void add_other_router_flags(CLI::App& command);

}  // namespace octavo
