// What a person types for a model of the hub: "org/name", "org/name@revision", "org/name:Q4_K_M".
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::hub {

struct ModelName {
  std::string repo;      // "org/name", or an old model's "name"
  std::string revision;  // a branch, a tag or a commit; "": none is named
  std::string variant;   // which of a repository's GGUF files: "Q4_K_M"; "": none is named

  // The revision to look for.
  std::string revision_or_main() const { return revision.empty() ? "main" : revision; }
};

// Errors: invalid_argument, field "model".
Result<ModelName> parse_model_name(std::string_view text);

// Forty hexadecimal digits, which can mean nothing but a commit.
bool is_commit(std::string_view revision);

}  // namespace octavo::hub
