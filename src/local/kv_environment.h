// Options of the KV cache and its transfers that come from the environment and from --kv-offloading-size.
#pragma once

#include "hub/settings.h"
#include "local/runtime_flags.h"

namespace octavo {

// Reads VLLM_CPU_KVCACHE_SPACE, VLLM_NIXL_SIDE_CHANNEL_*, AWS's variables for an S3-style store, and the
// tier of --kv-offloading-size. Errors name the variable or the flag.
Result<> take_kv_environment(RuntimeCommand& command, const hub::Environment& environment);

}  // namespace octavo
