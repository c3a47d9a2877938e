// Converts a GGUF file's metadata to the fields of config.json.
#pragma once

#include "base/error.h"
#include "model/config.h"
#include "model/gguf/architectures.h"
#include "weights/gguf.h"

namespace octavo {

// Returns the fields that the family reads. Errors about a field's value name the file's key. Other errors
// are unsupported or corrupt, with the key or the tensor.
Result<Config> gguf_config(const Gguf& gguf, const GgufArchitecture& architecture);

}  // namespace octavo
