// Tests on the demo model that an output depends only on its request. Tokens and logprobs are bit-identical
// for any batch, chunks, cache contents, threads and preemptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rig.h"

namespace octavo {

// Settings that may change the bits. Outputs are compared only within one level.
struct Level {
  CpuIsa isa;
  ModelDType dtype;
  std::optional<DType> cache_dtype;         // nullopt: data type of the activations
  Encoding quantization = Encoding::plain;  // online quantization while loading
};

std::string name(const Level& level);
std::vector<Level> levels();  // supported by this processor

struct Report {
  // comparisons of a request under a variation with the same request alone
  std::int64_t pairs = 0;
  std::int64_t differences = 0;
  std::int64_t preemptions = 0;
  std::vector<std::string> examples;  // the first differences
  // variations that should have caused preemptions, but did not
  std::vector<std::string> roomy;

  void add(const Report& other);
};

// Selects the variations whose index % of == part.
struct VariationPart {
  int part = 0;
  int of = 1;
};

// Compares `requests` requests under each variation of `part`. The model must have the demo model's
// vocabulary.
Report check_determinism(const Level& level, int requests, std::uint32_t seed,
                         const std::string& model = kDemoModel, VariationPart part = {});

}  // namespace octavo
