// One matrix from a checkpoint's tensors to a prepared weight.
#pragma once

#include "kernels/ops.h"
#include "model/parameters.h"

namespace octavo {

struct MatrixFormats {
  DType plain = DType::f32;                 // plain matrices are converted to it
  Encoding quantization = Encoding::plain;  // not plain: plain matrices are quantised
  DType activation = DType::f32;
};

// Checks and prepares the matrix, then lets go of its pages. Tensors in blocks stay as they are, each its own
// encoding; beside plain ones in the same matrix all become plain, in the activations' format. `parameter`
// has been checked against the checkpoint. Errors: corrupt, naming the tensor, when one is not finite;
// invalid_argument when a tensor to be quantised is in blocks; whatever the backend says.
Result<WeightPtr> load_matrix(const Checkpoint& checkpoint, const MatrixParameter& parameter,
                              const MatrixFormats& formats, Backend& backend, ThreadPool& pool);

// The format of the first plain matrix, those of the layers first; bf16 when all are in blocks.
DType plain_format(const Parameters& parameters, const Checkpoint& checkpoint);

// Number i of a plain tensor.
float number_at(const StoredTensor& tensor, std::int64_t i);

}  // namespace octavo
