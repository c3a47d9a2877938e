// Tensors of llama.cpp's mmproj files, which contain the encoder of a GGUF model. Their shapes differ from
// those of other checkpoints.
#pragma once

#include <vector>

#include "base/error.h"
#include "tensor/buffer.h"
#include "weights/stored_tensor.h"

namespace octavo {

// Removes dimensions of length 1 from biases, class tokens, positions and limits of matrices. Joins the patch
// embeddings of two video frames, v.patch_embd.weight and v.patch_embd.weight.1, to one tensor [dim, 3, 2,
// side, side]. Returns the memory of this tensor. Errors: corrupt if the two patch embeddings have different
// shapes or formats.
Result<Buffer> restore_encoder_tensors(std::vector<StoredTensor>& tensors);

}  // namespace octavo
