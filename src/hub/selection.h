// Selects the files of a repository that a model needs, by their names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::hub {

// Names of weight files: a single file, or shards with an index.
struct WeightFiles {
  std::string_view stem, single, index;
};
// Returns the names of the repository's weight files: Hugging Face's safetensors if they exist, otherwise
// Mistral's, otherwise PyTorch's.
const WeightFiles& weight_files(std::span<const std::string> names);

// Returns the names of the configuration, the tokenizer, the chat templates and weight_files(). If
// `variant` is set, or if the repository has no such weights, it returns the GGUF file or its parts
// instead. The names are in download order, weights last. Errors: not_found (field "model") if there are no
// weights or if the choice is ambiguous.
Result<std::vector<std::string>> files_needed(std::span<const std::string> names, std::string_view variant);

// Returns the parts of the GGUF file that `variant` selects, in order. Errors: as above.
Result<std::vector<std::string>> gguf_parts(std::span<const std::string> names, std::string_view variant);

// Returns the files of a LoRA adapter. Errors: as above.
Result<std::vector<std::string>> adapter_files(std::span<const std::string> names);

// A part of a GGUF file. "model-00002-of-00005.gguf" belongs to "model", which has 5 parts; a single file
// has 1 part.
struct Part {
  std::string stem;
  std::size_t of = 1;
};
Part part_of(std::string_view name);

}  // namespace octavo::hub
