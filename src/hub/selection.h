// Chooses which files of a repository a model needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::hub {

// Names of weight files: one file, or shards with an index.
struct WeightFiles {
  std::string_view stem, single, index;
};
// Prefers Hugging Face's safetensors, then Mistral's, then PyTorch's.
const WeightFiles& weight_files(std::span<const std::string> names);

// Returns true for the name of a file with the encoder of a GGUF model.
bool is_mmproj(std::string_view name);
// Returns the mmproj file to use, in F16 if it exists. `names` must not be empty.
std::string best_mmproj(std::span<const std::string> names);

// Returns the configuration, the tokenizer, the chat templates and weight_files(), in the order to download
// them, weights last. If `variant` is set, or the repository only has GGUF files, returns an mmproj file, if
// there is one, and the parts of a GGUF file. Returns not_found on "model" if no file fits, or several do.
Result<std::vector<std::string>> files_needed(std::span<const std::string> names, std::string_view variant);

// Returns the parts of the GGUF file that `variant` selects, in order. The errors are those of
// files_needed().
Result<std::vector<std::string>> gguf_parts(std::span<const std::string> names, std::string_view variant);

// The errors are those of files_needed().
Result<std::vector<std::string>> adapter_files(std::span<const std::string> names);

// A part of a GGUF file. "model-00002-of-00005.gguf" is part 2 of "model", which has 5 parts. A single file
// is one part.
struct Part {
  std::string stem;
  std::size_t of = 1;
};
Part part_of(std::string_view name);

}  // namespace octavo::hub
