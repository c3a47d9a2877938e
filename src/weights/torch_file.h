// Reads files that torch.save wrote and that contain a dictionary of tensors, such as pytorch_model.bin and
// adapter_model.bin. They are ZIP archives with a pickle and the tensors' storages; before PyTorch 1.6,
// they are pickles followed by storages. The pickle is read as data (pickle.h), so nothing in it is
// executed. Objects other than tensors are an error.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/stored_tensor.h"

namespace octavo {

// Returns the tensors ordered by name. Their bytes point into `file`; tensors that share a storage share
// bytes. Errors: corrupt, or unsupported if a tensor is not dense and row-major. Messages begin with `what`,
// the name of the file.
Result<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
