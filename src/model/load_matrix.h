// Loads one matrix from the tensors of a checkpoint as a prepared weight.
#pragma once

#include "kernels/ops.h"
#include "model/network.h"

namespace octavo {

struct MatrixFormats {
  DType plain = DType::f32;                 // plain matrices are converted to this format
  Encoding quantization = Encoding::plain;  // plain matrices are quantised to this encoding; Encoding::plain:
                                            // not quantised
  DType activation = DType::f32;
};

// Checks and prepares the matrix, then releases its pages of the file. Quantised tensors keep their
// encodings, with two exceptions: if the same matrix has plain tensors, or if the scale changes within 32
// columns (no kernel supports this), they become plain, in the format of the activations. `parameter` must
// have been checked against the checkpoint. Returns corrupt, with the tensor, if a number is not finite, and
// errors of the backend.
Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              const MatrixFormats& formats, Backend& backend, ThreadPool& pool);

// Returns the format of the first plain matrix; matrices of layers come first. If all matrices are packed, it
// returns the format of the norms; if all are in GGUF blocks, bf16.
DType plain_format(Network& network, const Checkpoint& checkpoint);

}  // namespace octavo
