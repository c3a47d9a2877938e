// Reads the network of a GGUF file.
#pragma once

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Converts the file's metadata to the fields that a family reads from config.json. It reverts the changes
// that the conversion to GGUF made: names of tensors, the order of rows of queries and keys for interleaved
// rotation, and the 1 added to Gemma's norms. Returns unsupported with the architecture or the key, or
// invalid_argument with the key and its limit.
Result<ModelSpec> gguf_spec(const Gguf& gguf);

}  // namespace octavo
