// Converts the metadata of a GGUF file to the fields of a config.json.
#pragma once

#include "base/error.h"
#include "model/config.h"
#include "model/gguf/architectures.h"
#include "weights/gguf.h"

namespace octavo {

// Returns the fields that the architecture's family reads. An error about a field's value names the file's
// key. Other errors: unsupported or corrupt; the message names the key or the tensor.
Result<Config> gguf_config(const Gguf& gguf, const GgufArchitecture& architecture);

}  // namespace octavo
