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
// The format of the repository's weights: Hugging Face's safetensors if present, else Mistral's, else
// PyTorch's.
const WeightFiles& weight_files(std::span<const std::string> names);

// Configuration, tokenizer, chat templates and weight_files(). If `variant` is set or there are no such
// weights: the GGUF file or its parts instead. In download order, weights last. Errors: not_found, field
// "model": no weights, or an ambiguous choice.
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
