// Finds a model's weight files in a folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

struct WeightFiles {
  std::vector<std::string> names;  // relative to the folder; ascending and unique
  bool torch = false;              // true: torch.save files; false: safetensors files
  // File of each tensor, from NAME.index.json. Empty if there is no index.
  std::map<std::string, std::string, std::less<>> file_of;
};

// Looks for model.safetensors, consolidated.safetensors (Mistral), medusa_lm_head.safetensors and
// pytorch_model.bin, in this order, as one file or as shards with an index. If none of them exists, it takes
// all other *.safetensors files except adapters, or the shards pytorch_model-0000i-of-0000n.bin. Errors:
// not_found; corrupt (the message names the index or the missing shard).
Result<WeightFiles> find_weight_files(const std::filesystem::path& folder);

// Returns whether the folder's weights are only in Mistral's format: consolidated.safetensors or its
// shards.
bool is_consolidated(const std::string& folder);

}  // namespace octavo
