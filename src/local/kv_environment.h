#pragma once

#include "hub/settings.h"
#include "local/runtime_flags.h"

namespace octavo {

// Applies VLLM_CPU_KVCACHE_SPACE, VLLM_NIXL_SIDE_CHANNEL_*, AWS's variables for an S3 store, and
// --kv-offloading-size. Errors name the variable or flag.
Result<> take_kv_environment(RuntimeCommand& command, const hub::Environment& environment);

}  // namespace octavo
