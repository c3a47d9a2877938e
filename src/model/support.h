// Checks whether a backend can run a network, before weights are read.
#pragma once

#include <string>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "model/spec.h"

namespace octavo {

// Compares the needs of all parts of the network and its encoder (NetworkPart::needs) with the backend, and
// checks whether the backend's attention supports their caches. If the backend lacks something, returns
// unsupported for the field "device"; the message names the part and what to do. Errors of the options
// block_size and kv_cache_dtype name these fields.
Result<> check_support(const ModelSpec& spec, const CacheOptions& cache, const Backend& backend);

}  // namespace octavo
