// Checks that a model in the cache is complete, and chooses the file to load.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Returns the folder, or the selected GGUF file (its first part). Returns not_found on "model" with the
// name of a missing file.
Result<std::filesystem::path> model_in(const std::filesystem::path& snapshot, std::string_view variant);

// Returns the folder of a LoRA adapter. The errors are those of model_in().
Result<std::filesystem::path> adapter_in(const std::filesystem::path& snapshot);

// Returns true if the snapshot has all safetensors files of a model or adapter, or at least one GGUF file.
bool is_complete(const std::filesystem::path& snapshot);

}  // namespace octavo::hub
