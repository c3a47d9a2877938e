// Checks that a model in a snapshot is complete, and selects the file to load.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// Returns the folder or the selected GGUF file (its first part if it has several). Errors: not_found (field
// "model"), with the name of the missing file.
Result<std::filesystem::path> model_in(const std::filesystem::path& snapshot, std::string_view variant);

// Returns the folder of a LoRA adapter. Errors: as above.
Result<std::filesystem::path> adapter_in(const std::filesystem::path& snapshot);

// Returns whether the snapshot contains a loadable model or adapter: all its safetensors files, or at least
// one GGUF file.
bool is_complete(const std::filesystem::path& snapshot);

}  // namespace octavo::hub
