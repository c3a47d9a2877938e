// How a GGUF file's model makes vectors or scores of texts.
#pragma once

#include <string_view>

#include "base/error.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

// Where the file says it: files of models that generate have no such key. Errors: unsupported or corrupt,
// naming key or tensor.
Result<> set_gguf_head(ModelSpec& spec, const Gguf& gguf, std::string_view architecture);

}  // namespace octavo
