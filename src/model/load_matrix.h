// Loads one matrix from the tensors of a checkpoint, and prepares it for the backend.
#pragma once

#include "kernels/ops.h"
#include "model/network.h"

namespace octavo {

struct MatrixFormats {
  DType plain = DType::f32;  // format that plain matrices are converted to
  // encoding that plain matrices are quantised to; Encoding::plain: no quantisation
  Encoding quantization = Encoding::plain;
  DType activation = DType::f32;
  bool late = false;  // LoadOptions::late
  bool fp8_activations = false;  // LoadOptions::fp8_activations
};

// Checks and prepares the matrix, then releases its pages of the file. Quantised tensors keep their encoding,
// with two exceptions. If some tensors of the matrix are plain, or if the scale changes within 32 columns (no
// kernel supports this), the tensors become plain, in the format of activations. `parameter` must have been
// checked against the checkpoint. Errors: corrupt if a number is not finite (the message names the tensor),
// and errors of the backend.
Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              MatrixFormats formats, Backend& backend, ThreadPool& pool);

// Returns the format of the first plain matrix. The matrices of layers are searched first. If all matrices
// are packed, the result is the format of the norms; if all are in GGUF blocks, it is bf16.
DType plain_format(Network& network, const Checkpoint& checkpoint);

}  // namespace octavo
