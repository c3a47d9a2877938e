// Files of torch.save that contain a dictionary of tensors, such as pytorch_model.bin and adapter_model.bin.
// They are ZIP archives of a pickle and storages; before PyTorch 1.6, pickles followed by storages. The
// pickle is read as data (pickle.h): nothing in it is executed. A file with other objects than tensors is an
// error.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "weights/stored_tensor.h"

namespace octavo {

// Parses a file. Tensors are ordered by name. Their bytes point into `file`; tensors with the same storage
// share bytes. Errors begin with `what`, the name of the file: corrupt, or unsupported if a tensor is not
// dense and row-major.
Result<std::vector<StoredTensor>> parse_torch_file(std::span<const std::byte> file, std::string_view what);

}  // namespace octavo
