#include "model/blocks/fixed_keys.h"

#include <cmath>

namespace octavo {

FixedKeys::FixedKeys(const Attention& spec, const Namer& name) : heads_(spec.kv_heads) {
  const std::int64_t count = spec.scores.fixed_keys, dim = spec.head_dim, value_dim = spec.stored_value_dim();
  const auto rows = [&](const std::string& tensor, std::int64_t width) {
    VectorParameter p = name.vector({tensor}, {count * heads_ * width});
    p.parts[0].shape = {count, heads_, width};
    p.size = count * heads_ * dim;
    p.row = dim;
    if (width < dim)
      p.order = {{0, width}, {-1, dim - width}};  // The cache's values are as wide as its keys.
    return p;
  };
  keys_ = rows(name.names.attention.fixed_keys, dim);
  if (spec.scores.fixed_values) {
    values_ = rows(name.names.attention.fixed_values, value_dim);
    return;
  }
  values_ = constant_vector(std::vector(static_cast<std::size_t>(count * heads_ * dim), 0.0F));
  values_.row = dim;
}

void FixedKeys::normalise(const NormParameter& norm) {
  if (norm.spec.kind == NormKind::none) return;
  const View rows = keys_.value;
  const auto* const weight = norm.weight.value.as<float>();
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    float* const key = rows.row<float>(i);
    double squares = 0;
    for (std::int64_t d = 0; d < rows.size(1); ++d) squares += double{key[d]} * key[d];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(rows.size(1)) + norm.spec.eps);
    for (std::int64_t d = 0; d < rows.size(1); ++d) key[d] = static_cast<float>(key[d] * scale * weight[d]);
  }
}

}  // namespace octavo
