// One matrix from a checkpoint's tensors to a prepared weight.
#pragma once

#include "kernels/ops.h"
#include "model/network.h"

namespace octavo {

struct MatrixFormats {
  DType plain = DType::f32;                 // plain matrices are converted to it
  Encoding quantization = Encoding::plain;  // not plain: quantises plain matrices to it
  DType activation = DType::f32;
};

// Checks and prepares the matrix, then releases its pages. Quantised tensors keep their encodings, with two
// exceptions: beside plain tensors in the same matrix, or if scales change within 32 columns, which no kernel
// multiplies, they become plain, in the activations' format. `parameter` has been checked against the
// checkpoint. Errors: corrupt, naming the tensor, if a number is not finite; errors of the backend.
Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              const MatrixFormats& formats, Backend& backend, ThreadPool& pool);

// The format of the first plain matrix, those of the layers first; that of the norms when all are packed,
// bf16 when all are in blocks.
DType plain_format(Network& network, const Checkpoint& checkpoint);

}  // namespace octavo
