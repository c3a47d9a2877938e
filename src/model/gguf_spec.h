// The network of a GGUF file.
#pragma once

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Turns the file's metadata into the fields that a family reads from config.json. Undoes the changes of the
// conversion to GGUF: names of tensors, rows of queries and keys in the order of interleaved rotation,
// Gemma's norms with 1 added. Errors: unsupported, naming architecture or key; invalid_argument, naming the
// key and its limit.
Result<ModelSpec> gguf_spec(const Gguf& gguf);

}  // namespace octavo
