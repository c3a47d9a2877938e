// Whether a backend can run a network: decided once, before any weight is read.
#pragma once

#include <string>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "model/spec.h"

namespace octavo {

// Checks the needs of the network's and its tower's parts (NetworkPart::needs) against the backend, and
// whether its attention can use their caches. Errors: unsupported, field "device": the backend lacks what a
// part needs; the message names the part and the remedy. Errors of options (block_size, kv_cache_dtype) keep
// their fields.
Result<> check_support(const ModelSpec& spec, const CacheOptions& cache, const Backend& backend);

}  // namespace octavo
