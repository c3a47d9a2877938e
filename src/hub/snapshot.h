// A snapshot of a repository on the disk: whether a model is all there, and what of it to load.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

// The folder, or the GGUF file that is meant (of several parts the first). Errors: not_found, field "model";
// says what is missing.
Result<std::filesystem::path> model_in(const std::filesystem::path& snapshot, std::string_view variant);

// The folder of a LoRA adapter. Errors as above.
Result<std::filesystem::path> adapter_in(const std::filesystem::path& snapshot);

// Some model or adapter can be loaded from it: its safetensors, or at least one GGUF file.
bool is_complete(const std::filesystem::path& snapshot);

}  // namespace octavo::hub
