// The promise that an answer depends on its request alone, tested on the shipped model: whatever the batch,
// the chunks, the cache, the threads and the preemptions, tokens and log-probabilities are the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rig.h"

namespace octavo {

// Settings that may change the bits: comparisons stay within one level.
struct Level {
  CpuIsa isa;
  ModelDType dtype;
  std::optional<DType> cache_dtype;         // nullopt: as the activations
  Encoding quantization = Encoding::plain;  // made while loading
};

std::string name(const Level& level);
std::vector<Level> levels();  // those that this processor has

struct Report {
  std::int64_t pairs = 0;  // of one request under one variation with the same request alone
  std::int64_t differences = 0;
  std::int64_t preemptions = 0;
  std::vector<std::string> examples;  // the first differences, in words
  std::vector<std::string> roomy;     // variations that were to preempt and did not

  void add(const Report& other);
};

// A part of the variations: those with index % of == part.
struct VariationPart {
  int part = 0;
  int of = 1;
};

// Compares `requests` requests under each variation of `part`; `model` has the demo model's vocabulary.
Report check_determinism(const Level& level, int requests, std::uint32_t seed,
                         const std::string& model = kDemoModel, VariationPart part = {});

}  // namespace octavo
