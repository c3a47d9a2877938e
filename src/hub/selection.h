// Selects by name the files of a repository that a model needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::hub {

// A repository's weights: one file, or shards with an index.
struct WeightFiles {
  std::string_view stem, single, index;
};
// Hugging Face's safetensors if they are among the names, else Mistral's, else PyTorch's.
const WeightFiles& weight_files(std::span<const std::string> names);

// Configuration, tokenizer, chat templates and weight_files(). If `variant` selects one, or there are no such
// weights: the GGUF file or its parts. In download order, weights last. Errors: not_found, field "model": no
// weights, or an ambiguous choice.
Result<std::vector<std::string>> files_needed(std::span<const std::string> names, std::string_view variant);

// The GGUF file that `variant` selects, as its parts in order. Errors as above.
Result<std::vector<std::string>> gguf_parts(std::span<const std::string> names, std::string_view variant);

// The files of a LoRA adapter. Errors as above.
Result<std::vector<std::string>> adapter_files(std::span<const std::string> names);

// "model-00002-of-00005.gguf" belongs to "model" with 5 parts; a single file has 1.
struct Part {
  std::string stem;
  std::size_t of = 1;
};
Part part_of(std::string_view name);

}  // namespace octavo::hub
