#include "model/blocks/distance_bias.h"

#include <algorithm>
#include <cmath>

namespace octavo {

// Bucket of a distance, computed as in T5.
static std::int64_t bucket_of(const Attention& a, std::int64_t distance) {
  const std::int64_t side =
      a.mask.causal ? a.scores.distance_bias.buckets : a.scores.distance_bias.buckets / 2;
  const std::int64_t first = !a.mask.causal && distance > 0 ? side : 0;
  const std::int64_t away = a.mask.causal ? std::max<std::int64_t>(0, -distance) : std::abs(distance);
  const std::int64_t exact = side / 2;
  if (away < exact) return first + away;
  const auto range = static_cast<float>(
      std::log(static_cast<double>(a.scores.distance_bias.furthest) / static_cast<double>(exact)));
  const float step = std::log(static_cast<float>(away) / static_cast<float>(exact)) / range;
  return first +
         std::min(side - 1, exact + static_cast<std::int64_t>(step * static_cast<float>(side - exact)));
}

VectorParameter distance_bias(const Attention& a, const Namer& name) {
  const std::int64_t buckets = a.scores.distance_bias.buckets, most = a.scores.distance_bias.furthest;
  VectorParameter bias =
      Namer(name.names, "").vector({name.names.attention.distance_bias}, {buckets * a.q_heads});
  bias.parts[0].shape = {buckets, a.q_heads};
  bias.size = a.q_heads * (2 * most + 1);
  for (std::int64_t head = 0; head < a.q_heads; ++head)
    for (std::int64_t distance = -most; distance <= most; ++distance)
      bias.order.push_back({bucket_of(a, distance) * a.q_heads + head, 1});
  return bias;
}

VectorParameter root_biases(const std::vector<float>& slopes, std::int64_t most) {
  std::vector<float> biases;
  for (const float slope : slopes)
    for (std::int64_t distance = -most; distance <= most; ++distance)
      biases.push_back(-slope * std::sqrt(static_cast<float>(std::max<std::int64_t>(0, -distance))));
  return constant_vector(std::move(biases));
}

}  // namespace octavo
