// Which files of a repository a model needs, by their names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::hub {

// What a repository calls its weights: one file, or shards that an index lists.
struct WeightFiles {
  std::string_view stem, single, index;
};
// Hugging Face's safetensors where they are among the names, else Mistral's, else PyTorch's.
const WeightFiles& weight_files(std::span<const std::string> names);

// Configuration, tokenizer, chat templates and weight_files(); or, where `variant` names them or there are no
// such weights, the GGUF file or the parts of it. In the order in which they are wanted: weights last. Errors:
// not_found, field "model": no weights, or no telling which.
Result<std::vector<std::string>> files_needed(std::span<const std::string> names, std::string_view variant);

// The GGUF file that `variant` means, as its parts in order. Errors as above.
Result<std::vector<std::string>> gguf_parts(std::span<const std::string> names, std::string_view variant);

// Of a LoRA adapter. Errors as above.
Result<std::vector<std::string>> adapter_files(std::span<const std::string> names);

// "model-00002-of-00005.gguf" is 5 and belongs to "model"; a file in one piece is 1.
struct Part {
  std::string stem;
  std::size_t of = 1;
};
Part part_of(std::string_view name);

}  // namespace octavo::hub
