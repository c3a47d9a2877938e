// A GGUF file's metadata as the fields of config.json.
#pragma once

#include "base/error.h"
#include "model/config.h"
#include "model/gguf/architectures.h"
#include "weights/gguf.h"

namespace octavo {

// The fields that the family reads, in the words of its config.json. Errors of the fields name the file's
// keys. Errors: unsupported or corrupt, naming key or tensor.
Result<Config> gguf_config(const Gguf& gguf, const GgufArchitecture& architecture);

}  // namespace octavo
