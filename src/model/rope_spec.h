// Specs of rotary embeddings and of the attention temperature.
#pragma once

#include <cstdint>
#include <vector>

namespace octavo {

enum class RopeScalingKind : std::uint8_t {
  none,
  linear,
  dynamic,
  llama3,
  yarn,
  longrope,
  proportional,
  ntk
};

// Scaling of a rotary embedding for contexts longer than in training; rope.h has the formulas. Fields that a
// type does not use keep their defaults.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  int original_positions = 0;  // training length in tokens
  // only llama3
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  // only yarn
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  // only proportional: fraction of the pairs, from the first one on, that are rotated
  double share = 1;
  // only longrope: a divisor per pair
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // yarn and longrope: factor of cos and sin
  double attention_factor = 1;
};

// How frequencies are assigned to pairs if the rotary embedding has several axes.
enum class AxisFrequencies : std::uint8_t {
  in_line,      // pairs are numbered across all axes
  anew,         // pairs of each axis are numbered from 0
  alternating,  // axes alternate and have equal numbers of pairs; the first axis has the first frequency
};

struct RopeSpec {
  int rotary_dim = 0;  // number of rotated elements of a head; even
  double theta = 10000;
  bool interleaved = false;
  RopeScaling scaling = {};
  // If not empty, tokens have a position on each of several axes (Wang et al., "Qwen2-VL", 2024), and pair i
  // is rotated by the position on axis axes[i].
  std::vector<std::int32_t> axes = {};
  AxisFrequencies axis_frequencies = AxisFrequencies::in_line;
};

// Factor of queries: a query at `position` is multiplied by 1 + beta * ln(1 + floor((position + shift) /
// length)), so that attention over long contexts stays sharp (Llama 4, 2025).
struct Temperature {
  double beta = 0;
  int length = 0;
  int shift = 0;
};

}  // namespace octavo
