// One matrix from a checkpoint's tensors to a prepared weight.
#pragma once

#include "kernels/ops.h"
#include "model/network.h"

namespace octavo {

struct MatrixFormats {
  DType plain = DType::f32;                 // plain matrices are converted to it
  Encoding quantization = Encoding::plain;  // not plain: plain matrices are quantised
  DType activation = DType::f32;
};

// Checks and prepares the matrix, then lets go of its pages. Quantised tensors stay as they are, each its own
// encoding; beside ones that stay plain in the same matrix all become plain, in the activations' format, and
// so do those that no kernel multiplies: codes whose scales change within 32 columns. `parameter` has been
// checked against the checkpoint. Errors: corrupt, naming the tensor, when one is not finite; whatever the
// backend says.
Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              const MatrixFormats& formats, Backend& backend, ThreadPool& pool);

// The format of the first plain matrix, those of the layers first; that of the norms when all are packed,
// bf16 when all are in blocks.
DType plain_format(Network& network, const Checkpoint& checkpoint);

}  // namespace octavo
