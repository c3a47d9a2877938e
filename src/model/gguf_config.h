// A GGUF file's metadata as the fields of config.json.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace octavo {

constexpr std::size_t kGgufLayersMax = 1024;

struct GgufArchitecture {
  std::string_view name;    // general.architecture
  std::string_view family;  // as in config.json's "architectures"
  // The conversion has put the rows of queries and keys in the order of interleaved pairs.
  bool interleaved = false;
};

// What the family reads, in the words of its config.json; errors of it name the file's keys. Errors:
// unsupported or corrupt, naming key or tensor.
Result<Config> gguf_config(const Gguf& gguf, const GgufArchitecture& architecture);

}  // namespace octavo
