// The supported architectures of GGUF files, one row each.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"
#include "model/gguf/fields.h"

namespace octavo {

struct GgufTraits {
  // Whether the conversion to GGUF has changed the order of the rows of queries and keys to interleaved
  // pairs.
  bool interleaved = false;
  bool lists = false;   // whether layers may have different numbers of heads and different widths
  bool latent = false;  // whether the model uses latent attention
  // Whether the weights of the selected experts are divided by their sum, if the file does not contain the
  // setting.
  bool experts_normed = false;
};

struct GgufArchitecture {
  std::string_view name;    // general.architecture in the file
  std::string_view family;  // name of the architecture in config.json
  GgufTraits traits = {};
  // sets fields that the common keys (config.cc) do not contain; see translate.h
  Result<> (*translate)(GgufFields& fields) = nullptr;
};

// Returns all architectures, in ascending order of name.
std::span<const GgufArchitecture> gguf_architectures();

}  // namespace octavo
