// The architectures of GGUF files that can be loaded.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

struct GgufTraits {
  // true: the conversion to GGUF has reordered the rows of queries and keys to interleaved pairs
  bool interleaved = false;
  bool lists = false;   // layers may have different numbers of heads and different widths
  bool latent = false;  // the model uses latent attention (MLA)
  // Default for files that lack the key: the weights of the selected experts are divided by their sum.
  bool experts_normed = false;
};

struct GgufArchitecture {
  std::string_view name;    // general.architecture in the file
  std::string_view family;  // the architecture in config.json
  GgufTraits traits = {};
  // Sets fields that the common keys (config.cc) do not contain; see translate.h.
  Result<> (*translate)(GgufFields& fields) = nullptr;
};

// All architectures, ascending by name.
std::span<const GgufArchitecture> gguf_architectures();

}  // namespace octavo
