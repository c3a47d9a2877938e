// The supported architectures of GGUF files, one row each.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

struct GgufTraits {
  // The conversion to GGUF has reordered the rows of queries and keys to interleaved pairs.
  bool interleaved = false;
  bool lists = false;   // layers may have different numbers of heads and different widths
  bool latent = false;  // the model uses latent attention
  // Default: the weights of the chosen experts are divided by their sum.
  bool experts_normed = false;
};

struct GgufArchitecture {
  std::string_view name;    // the file's general.architecture
  std::string_view family;  // name of the architecture in config.json
  GgufTraits traits = {};
  // Sets fields that the common keys (config.cc) do not give; see translate.h.
  Result<> (*translate)(GgufFields& fields) = nullptr;
};

// Ascending by name.
std::span<const GgufArchitecture> gguf_architectures();

}  // namespace octavo
