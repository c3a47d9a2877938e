#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

namespace octavo {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double dynamic_theta(const RopeSpec& rope, int length) {
  const RopeScaling& s = rope.scaling;
  const double ratio = static_cast<double>(std::max(length, s.original_positions)) / s.original_positions;
  const double dim = rope.rotary_dim;
  return rope.theta * std::pow(s.factor * ratio - (s.factor - 1), dim / (dim - 2));
}

double llama3_frequency(const RopeScaling& s, double frequency) {
  // number of full rotations within the training length
  const double turns = s.original_positions * frequency / kTurn;
  if (turns < s.low_freq_factor) return frequency / s.factor;
  if (turns >= s.high_freq_factor) return frequency;
  const double blend = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - blend) * frequency / s.factor + blend * frequency;
}

// Yarn's ramp: pairs below `low` keep their frequency, the frequency of pairs above `high` is divided by the
// factor, and pairs between them blend both.
struct YarnRamp {
  double low;
  double high;
  double share(int pair) const { return std::clamp((pair - low) / (high - low), 0.0, 1.0); }
};

YarnRamp yarn_ramp(const RopeSpec& rope) {
  const RopeScaling& s = rope.scaling;
  // Index, not rounded, of the pair that rotates `turns` times within the training length.
  const auto pair_of = [&](double turns) {
    return rope.rotary_dim * std::log(s.original_positions / (turns * kTurn)) / (2 * std::log(rope.theta));
  };
  double low = pair_of(s.beta_fast);
  double high = pair_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.rotary_dim - 1.0);
  if (low == high) high += 0.001;
  return {low, high};
}

std::vector<float> frequencies_by_axis(const RopeSpec& rope, int max_model_len) {
  std::vector<float> frequencies(rope.axes.size());
  for (const int axis : std::set(rope.axes.begin(), rope.axes.end())) {
    RopeSpec own = rope;
    own.axis_frequencies = AxisFrequencies::in_line;
    own.rotary_dim = 2 * static_cast<int>(std::ranges::count(rope.axes, axis));
    const std::vector<float> of_axis = rope_frequencies(own, max_model_len);
    for (std::size_t pair = 0, next = 0; pair < frequencies.size(); ++pair)
      if (rope.axes[pair] == axis) frequencies[pair] = of_axis[next++];
  }
  return frequencies;
}

// Returns frequencies for alternating axes: pair k of an axis has the frequency with index k * axes + axis.
std::vector<float> alternating_frequencies(const RopeSpec& rope, int max_model_len) {
  RopeSpec own = rope;
  own.axis_frequencies = AxisFrequencies::in_line;
  const std::vector<float> in_line = rope_frequencies(own, max_model_len);
  std::vector<std::size_t> next(static_cast<std::size_t>(std::ranges::max(rope.axes)) + 1);
  std::iota(next.begin(), next.end(), std::size_t{0});
  std::vector<float> frequencies;
  for (const std::int32_t axis : rope.axes) {
    std::size_t& pair = next[static_cast<std::size_t>(axis)];
    frequencies.push_back(in_line.at(pair));
    pair += next.size();
  }
  return frequencies;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeSpec& rope, int max_model_len) {
  if (rope.axis_frequencies == AxisFrequencies::anew) return frequencies_by_axis(rope, max_model_len);
  if (rope.axis_frequencies == AxisFrequencies::alternating)
    return alternating_frequencies(rope, max_model_len);
  const RopeScaling& s = rope.scaling;
  const double theta = s.kind == RopeScalingKind::dynamic ? dynamic_theta(rope, max_model_len) : rope.theta;
  const YarnRamp ramp = s.kind == RopeScalingKind::yarn ? yarn_ramp(rope) : YarnRamp{0, 1};
  const auto& divisors = max_model_len > s.original_positions ? s.long_factors : s.short_factors;

  std::vector<float> frequencies;
  for (int pair = 0; pair < rope.rotary_dim / 2; ++pair) {
    const double plain = std::pow(theta, -2.0 * pair / rope.rotary_dim);
    double f = plain;
    switch (s.kind) {
      case RopeScalingKind::none:
      case RopeScalingKind::dynamic:
        break;
      case RopeScalingKind::linear:
        f = plain / s.factor;
        break;
      case RopeScalingKind::llama3:
        f = llama3_frequency(s, plain);
        break;
      case RopeScalingKind::yarn:
        f = plain / s.factor * ramp.share(pair) + plain * (1 - ramp.share(pair));
        break;
      case RopeScalingKind::proportional:
        f = pair < static_cast<int>(s.share * (rope.rotary_dim / 2)) ? plain / s.factor : 0;
        break;
      case RopeScalingKind::ntk:
        f = std::pow(theta * s.factor, -2.0 * pair / rope.rotary_dim) /
            std::pow(s.factor, 2.0 / rope.rotary_dim);
        break;
      case RopeScalingKind::longrope:
        f = plain / divisors[static_cast<std::size_t>(pair)];
        break;
    }
    frequencies.push_back(static_cast<float>(f));
  }
  return frequencies;
}

std::vector<float> temperatures(const Temperature& temperature, int positions) {
  std::vector<float> all;
  for (int position = 0; position < positions; ++position) {
    const int shifted = position + temperature.shift;
    const int lengths = shifted / temperature.length;
    const double exact = static_cast<double>(shifted) / temperature.length;
    all.push_back(static_cast<float>(temperature.power != 0
                                         ? std::pow(1 + exact, temperature.power)
                                         : 1 + temperature.beta * std::log1p(static_cast<double>(lengths))));
  }
  return all;
}

}  // namespace octavo
