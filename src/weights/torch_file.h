// Files of torch.save with a dictionary of tensors: pytorch_model.bin, adapter_model.bin. A ZIP archive of a
// pickle and storages; before PyTorch 1.6, pickles and then storages. The pickle is read as data (pickle.h):
// nothing in it runs. A file that needs more than tensors is an error.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/stored_tensor.h"

namespace octavo {

// Tensors are in ascending order of names; their bytes point into `file`, and tensors with one storage share
// bytes. Errors begin with `what`, the file's name: ErrorCode::corrupt, or unsupported for a tensor that is
// not dense and row-major.
Result<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
