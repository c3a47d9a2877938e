// Which files of a folder hold a model's weights.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

struct WeightFiles {
  std::vector<std::string> names;  // relative to the folder, ascending, each name once
  bool torch = false;              // files of torch.save, not safetensors
  // The file of each tensor, as NAME.index.json says it; empty: there is no index.
  std::map<std::string, std::string, std::less<>> file_of;
};

// model.safetensors, consolidated.safetensors (Mistral's), medusa_lm_head.safetensors or pytorch_model.bin, in this order:
// the file or the shards of its index. Without any: all other *.safetensors except adapters, or the shards
// pytorch_model-0000i-of-0000n.bin. Errors: not_found; corrupt, naming the index or the shard that is missing.
Result<WeightFiles> find_weight_files(const std::filesystem::path& folder);

// Whether the only weights of a folder are Mistral's: consolidated.safetensors or its shards.
bool is_consolidated(const std::string& folder);

}  // namespace octavo
