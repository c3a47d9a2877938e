// Tests on the shipped model that an answer depends only on its request: tokens and logprobs have the same
// bits for any batch, chunks, cache contents, threads and preemptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rig.h"

namespace octavo {

// Settings that may change the bits. Answers are compared only within one level.
struct Level {
  CpuIsa isa;
  ModelDType dtype;
  std::optional<DType> cache_dtype;         // nullopt: format of the activations
  Encoding quantization = Encoding::plain;  // quantisation while loading
};

std::string name(const Level& level);
std::vector<Level> levels();  // Returns the levels that this processor supports.

struct Report {
  std::int64_t pairs = 0;  // number of comparisons of a request under one variation with the same request
                           // alone
  std::int64_t differences = 0;
  std::int64_t preemptions = 0;
  std::vector<std::string> examples;  // descriptions of the first differences
  std::vector<std::string> roomy;     // variations that should have caused preemptions but did not

  void add(const Report& other);
};

// A part of the variations: those for which index % of == part.
struct VariationPart {
  int part = 0;
  int of = 1;
};

// Compares `requests` requests under each variation of `part`. `model` must have the demo model's vocabulary.
Report check_determinism(const Level& level, int requests, std::uint32_t seed,
                         const std::string& model = kDemoModel, VariationPart part = {});

}  // namespace octavo
