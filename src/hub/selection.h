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
// Returns the files of the repository's weights: Hugging Face's safetensors if present, otherwise Mistral's,
// otherwise PyTorch's.
const WeightFiles& weight_files(std::span<const std::string> names);

// Returns the names of configuration, tokenizer, chat templates and weight_files(). If `variant` is set, or
// if the repository has no such weights, it returns the GGUF file or its parts instead. Names are in download
// order, weights last. Returns not_found for the field "model" if there are no weights, or if the choice is
// ambiguous.
Result<std::vector<std::string>> files_needed(std::span<const std::string> names, std::string_view variant);

// The GGUF file that `variant` selects, as its parts in order. Errors: as above.
Result<std::vector<std::string>> gguf_parts(std::span<const std::string> names, std::string_view variant);

// The files of a LoRA adapter. Errors: as above.
Result<std::vector<std::string>> adapter_files(std::span<const std::string> names);

// A part of a GGUF file: "model-00002-of-00005.gguf" belongs to "model", which has 5 parts. A single file has
// 1 part.
struct Part {
  std::string stem;
  std::size_t of = 1;
};
Part part_of(std::string_view name);

}  // namespace octavo::hub
