// MXFP4 and NVFP4 matrices of GGUF files, where one tensor interleaves codes and scales.
#pragma once

#include <vector>

#include "weights/packed_matrix.h"

namespace octavo {

// Converts a tensor to a matrix or a stack of matrices. The result points into the file.
StoredTensor matrix_of_blocks(const StoredTensor& tensor, const ItemBlocks& blocks);

// Joins each NVFP4 matrix "a.weight" with its scale "a.scale", which a file may lack. Removes
// "a.input_scale", because the engine computes the scales of activations. `tensors` must be sorted by name.
// Errors: corrupt if a scale has a wrong shape or format.
Result<> join_nvfp4_scales(std::vector<StoredTensor>& tensors);

}  // namespace octavo
