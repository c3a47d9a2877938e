// Opens the files of a LoRA adapter: a folder in PEFT's format, or a GGUF file that llama.cpp's conversion
// wrote.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/adapter_config.h"
#include "tensor/mapped_file.h"
#include "weights/stored_tensor.h"

namespace octavo {

struct StoredAdapter {
  AdapterConfig config;
  std::string name;  // name of the file with the tensors, without its folder
  MappedFile file;
  std::vector<StoredTensor> tensors;  // ascending by name
};

// `path` is a folder or a GGUF file. Errors: not_found if a file is missing; corrupt; unsupported or
// invalid_argument (the message names the field).
Result<StoredAdapter> open_adapter(const std::string& path);

}  // namespace octavo
