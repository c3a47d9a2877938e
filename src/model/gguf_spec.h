// The network of a GGUF file.
#pragma once

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// The file's metadata as the fields that a family reads from config.json, and what the conversion to GGUF
// changed put right: names of tensors, rows of queries and keys in the order of interleaved rotation, norms
// that have Gemma's 1 added. Errors: unsupported, naming architecture or key; invalid_argument, naming the
// key and its limit.
Result<ModelSpec> gguf_spec(const Gguf& gguf);

}  // namespace octavo
