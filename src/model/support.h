// Checks whether a backend can run a network, before weights are read.
#pragma once

#include <string>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "model/spec.h"

namespace octavo {

// Compares what all parts of the network and of its encoder need (NetworkPart::needs) with the backend, and
// checks whether the backend's attention supports their caches. If the backend lacks something, returns
// unsupported for the field "device"; the message names the part and what to do. An unsupported option is
// reported for the field block_size or kv_cache_dtype.
Result<> check_support(const ModelSpec& spec, const CacheOptions& cache, const Backend& backend);

}  // namespace octavo
