// Configuration (spec) of a rotary embedding (rope.h).
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

// Scaling of a rotary embedding for contexts that are longer than in training. rope.h has the formulas.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  int original_positions = 0;  // training length in tokens
  // low_freq_factor and high_freq_factor are used only by llama3.
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  // The three fields up to `truncate` are used only by yarn.
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  // only for proportional: fraction of the pairs, from the first one on, that are rotated
  double share = 1;
  // only for longrope: a divisor per pair
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // only for yarn and longrope: factor of cos and sin
  double attention_factor = 1;
};

// Decides which frequency a pair has if the rotary embedding has several axes.
enum class AxisFrequencies : std::uint8_t {
  in_line,      // pairs are numbered across all axes
  anew,         // pairs of each axis are numbered from 0
  alternating,  // axes take turns and have equal numbers of pairs; the first axis has the first frequency
};

struct RopeSpec {
  int rotary_dim = 0;  // rotated elements of a head; even
  double theta = 10000;
  bool interleaved = false;
  RopeScaling scaling = {};
  // If not empty, tokens have a position on each of several axes (Wang et al., "Qwen2-VL", 2024). Pair i is
  // rotated by the position on axis axes[i].
  std::vector<std::int32_t> axes = {};
  AxisFrequencies axis_frequencies = AxisFrequencies::in_line;
};

// Factor of queries, so that attention over long contexts stays sharp. The query at `position` is multiplied
// by 1 + beta * ln(1 + floor((position + shift) / length)) (Llama 4, 2025) or, with `power`, by
// (1 + (position + shift) / length)^power (Beam, 2026).
struct Temperature {
  double beta = 0;
  double power = 0;
  int length = 0;  // 0: queries have no factor
  int shift = 0;
};

}  // namespace octavo
