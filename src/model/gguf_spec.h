// The network of a GGUF file.
#pragma once

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Converts the file's metadata to the fields that a family reads from config.json. Reverts the changes of the
// conversion to GGUF: names of tensors, the order of rows of queries and keys for interleaved rotation, and 1
// added to Gemma's norms. Errors: unsupported, with the architecture or the key; invalid_argument, with the
// key and its limit.
Result<ModelSpec> gguf_spec(const Gguf& gguf);

}  // namespace octavo
