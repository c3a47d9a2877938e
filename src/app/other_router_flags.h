// Recognises flags of other routers that `octavo route` does not have: SGLang's router, vllm-router, the
// router of vLLM's Production Stack, and Dynamo's frontend and router.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo {

// Each of these flags either logs what to use in Octavo instead, or is an error.
void add_other_router_flags(CLI::App& command);

}  // namespace octavo
