// Name of a model on the hub: "org/name", "org/name@revision", "org/name:Q4_K_M".
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

struct ModelName {
  std::string repo;      // "org/name", or only "name" for some old models
  std::string revision;  // branch, tag or commit; "" if not given
  std::string variant;   // selects a GGUF file of the repository, such as "Q4_K_M"; "" if not given

  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
};

// Errors: invalid_argument (field "model").
Result<ModelName> parse_model_name(std::string_view text);

// Returns whether the revision is a commit: 40 hexadecimal digits.
bool is_commit(std::string_view revision);

}  // namespace octavo::hub
