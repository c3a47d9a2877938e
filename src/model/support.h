// Checks whether a backend can run a network, before any weight is read.
#pragma once

#include <string>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "model/spec.h"

namespace octavo {

// Compares the needs of all parts of the network and its tower (NetworkPart::needs) with the backend, and
// checks whether its attention supports their caches. Errors: unsupported, field "device", if the backend
// lacks something; the message names the part and what to do. Errors of options (block_size, kv_cache_dtype)
// have these fields.
Result<> check_support(const ModelSpec& spec, const CacheOptions& cache, const Backend& backend);

}  // namespace octavo
