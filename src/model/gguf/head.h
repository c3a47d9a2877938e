// Pooling heads of GGUF models.
#pragma once

#include <string_view>

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Sets the pooling head if the file has a pooling key; generating models have none. Returns unsupported or
// corrupt, with the key or the tensor.
Result<> set_gguf_head(ModelSpec& spec, const Gguf& gguf, std::string_view architecture);

}  // namespace octavo
