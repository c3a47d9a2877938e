// The architectures of GGUF files: one row each.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

struct GgufTraits {
  // The conversion has put the rows of queries and keys in the order of interleaved pairs.
  bool interleaved = false;
  bool lists = false;   // layers may differ in their numbers of heads, and in their widths
  bool latent = false;  // attention is latent
  // Default: weights of the chosen experts are divided by their sum.
  bool experts_normed = false;
};

struct GgufArchitecture {
  std::string_view name;    // general.architecture
  std::string_view family;  // as in config.json's "architectures"
  GgufTraits traits = {};
  // Fields that the keys of all architectures (config.cc) do not give: translate.h.
  Result<> (*translate)(GgufFields& fields) = nullptr;
};

// Ascending by name.
std::span<const GgufArchitecture> gguf_architectures();

}  // namespace octavo
