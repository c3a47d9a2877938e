#pragma once

#include "hub/settings.h"
#include "local/runtime_flags.h"

namespace octavo {

// Reads the options of the KV cache and its transfers from VLLM_CPU_KVCACHE_SPACE,
// VLLM_NIXL_SIDE_CHANNEL_*, AWS's variables for an S3-style store, and --kv-offloading-size. Errors name
// the variable or the flag.
Result<> take_kv_environment(RuntimeCommand& command, const hub::Environment& environment);

}  // namespace octavo
