// Rotary embeddings, and the temperature of attention.
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

// Scaling of a rotary embedding beyond its trained length; formulas in rope.h. Fields that a kind does not
// use keep their defaults.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  int original_positions = 0;  // the length of training
  // llama3
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  // yarn
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  // proportional: share of the pairs that rotate; the first ones
  double share = 1;
  // longrope: one divisor a pair of elements
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // yarn and longrope: what cos and sin are multiplied by
  double attention_factor = 1;
};

// Which frequencies the pairs of a rotary embedding of several axes have.
enum class AxisFrequencies : std::uint8_t {
  in_line,      // pairs are numbered across all axes
  anew,         // pairs are numbered per axis
  alternating,  // the axes, with equal numbers of pairs, alternate: the first has the first frequency
};

struct RopeSpec {
  int rotary_dim = 0;  // rotated elements of a head; even
  double theta = 10000;
  bool interleaved = false;
  RopeScaling scaling = {};
  // Not empty: tokens have a position on each of several axes (Wang et al., "Qwen2-VL", 2024), and pair i
  // rotates by the one on axes[i].
  std::vector<std::int32_t> axes = {};
  AxisFrequencies axis_frequencies = AxisFrequencies::in_line;
};

// Queries of the token at `position` count 1 + beta * ln(1 + floor((position + shift) / length)) times, so
// that attention over long contexts stays sharp (Llama 4, 2025).
struct Temperature {
  double beta = 0;
  int length = 0;
  int shift = 0;
};

}  // namespace octavo
