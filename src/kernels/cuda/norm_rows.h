// Norms of rows that one thread block processes.
#pragma once

#include "kernels/cuda/views.h"
#include "kernels/operators/rows.h"

namespace octavo::cuda {

// Statistics of a row; the normalised row, before weight and bias, is (x - mean) * scale.
struct Moments {
  float mean, scale;
};

// value(i): element i of the row. Every one of the kCount threads of the thread block must call it.
template <int kCount = kColumnThreads, class Value>
__device__ inline Moments moments_of(NormKind kind, float eps, std::int64_t dim, float* partials,
                                     Value value) {
  if (kind == NormKind::affine) return {0, 1};
  const auto count = static_cast<float>(dim);
  float mean = 0;
  if (kind == NormKind::layer) {
    for (std::int64_t i = thread(); i < dim; i += kCount) mean += value(i);
    mean = block_sum(mean, partials) / count;
  }
  float squares = 0;
  for (std::int64_t i = thread(); i < dim; i += kCount)
    squares = fmaf(value(i) - mean, value(i) - mean, squares);
  squares = block_sum(squares, partials);
  return {mean, 1.0f / sqrtf(squares / count + eps)};
}

// i: index of the element's weight.
__device__ inline float normalized(const Norm& norm, const Moments& m, float x, std::int64_t i) {
  const float y = (x - m.mean) * m.scale * items<float>(norm.weight)[i];
  return norm.bias ? y + items<float>(norm.bias)[i] : y;
}

}  // namespace octavo::cuda
