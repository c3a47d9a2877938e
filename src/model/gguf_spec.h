// Makes a model's spec from a GGUF file (the translation is in gguf/).
#pragma once

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Converts the metadata to the fields of a config.json, which the model's family reads. The spec reverts what
// the conversion to GGUF changed: tensor names, the row order of queries and keys with interleaved RoPE, and
// the 1 added to Gemma's norms. Errors: unsupported (the message names the architecture or the key), or
// invalid_argument (the key and its limit).
Result<ModelSpec> gguf_spec(const Gguf& gguf);

}  // namespace octavo
