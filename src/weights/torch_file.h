// Files that torch.save wrote of a dictionary of tensors: pytorch_model.bin, adapter_model.bin. A ZIP archive
// of a pickle and the storages beside it, or, before PyTorch 1.6, pickles and then the storages. The pickle
// is read as data (pickle.h): nothing in it runs, and a file that asks for more than tensors is an error that
// names what.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/stored_tensor.h"

namespace octavo {

// Tensors come in ascending order of their names; their bytes point into `file`, and tensors that share a
// storage share their bytes. Errors are ErrorCode::corrupt, or unsupported for what is no dense tensor in
// order of its rows, and begin with `what`, the file's name.
Result<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
