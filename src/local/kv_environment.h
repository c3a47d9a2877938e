// The KV cache and its transfers as the environment and --kv-offloading-size set it.
#pragma once

#include "hub/settings.h"
#include "local/runtime_flags.h"

namespace octavo {

// VLLM_CPU_KVCACHE_SPACE, VLLM_NIXL_SIDE_CHANNEL_*, AWS's variables for a store, and the tier of
// --kv-offloading-size. Errors name the variable or the flag.
Result<> take_kv_environment(RuntimeCommand& command, const hub::Environment& environment);

}  // namespace octavo
