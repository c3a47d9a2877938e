// Pooling heads of GGUF files.
#pragma once

#include <string_view>

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Sets spec.head if the file has a pooling key. Models that generate text have none. Errors: unsupported or
// corrupt; the message names the key or the tensor.
Result<> set_gguf_head(ModelSpec& spec, const Gguf& gguf, std::string_view architecture);

}  // namespace octavo
