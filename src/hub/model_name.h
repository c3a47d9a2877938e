// Parses the name of a model on the hub: "org/name", "org/name@revision", "org/name:Q4_K_M".
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

struct ModelName {
  std::string repo;      // "org/name"; for some old models only "name"
  std::string revision;  // branch, tag or commit, or ""
  // selects a GGUF file of the repository, such as "Q4_K_M", or ""
  std::string variant;

  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
};

// Returns invalid_argument on "model" for an invalid name.
Result<ModelName> parse_model_name(std::string_view text);

// Returns true for 40 hexadecimal digits.
bool is_commit(std::string_view revision);

}  // namespace octavo::hub
