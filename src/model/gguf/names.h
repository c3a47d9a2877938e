// Names of tensors in GGUF files.
#pragma once

#include <string>

#include "model/gguf/layers.h"
#include "model/spec.h"
#include "weights/gguf.h"

namespace octavo {

Names gguf_names(const ModelSpec& spec, const Gguf& gguf, const GgufLayers& layers);

// Tensor names for T5's encoder or decoder. `half` is "enc." or "dec.".
Names gguf_half_names(const std::string& half, const Gguf& gguf);

}  // namespace octavo
