// Rotates keys, values, queries and results of attention for 4-bit KV caches (kv_codes.h), with vectors of 16
// bytes, which every processor has.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/kv_codes.h"

namespace octavo::cpu {

// `dim` must be a multiple of 8.
inline void rotate_kv(float* values, std::int64_t dim) {
  typedef float Vector __attribute__((vector_size(16)));
  const int size = kv_rotation_size(static_cast<int>(dim));
  const Vector factor = Vector{} + kv_rotation_factor(size);
  const auto load = [&](std::int64_t i) {
    Vector vector;
    std::memcpy(&vector, values + i, sizeof vector);
    return vector;
  };
  const auto store = [&](std::int64_t i, Vector vector) { std::memcpy(values + i, &vector, sizeof vector); };
  for (std::int64_t i = 0; i < dim; i += 4) {
    Vector x = load(i), other = __builtin_shufflevector(x, x, 1, 0, 3, 2);
    x = __builtin_shufflevector(x + other, other - x, 0, 5, 2, 7);
    other = __builtin_shufflevector(x, x, 2, 3, 0, 1);
    store(i, __builtin_shufflevector(x + other, other - x, 0, 1, 6, 7));
  }
  for (std::int64_t apart = 4; apart < size; apart *= 2)
    for (std::int64_t begin = 0; begin < dim; begin += 2 * apart)
      for (std::int64_t i = begin; i < begin + apart; i += 4) {
        const Vector a = load(i), b = load(i + apart);
        store(i, a + b);
        store(i + apart, a - b);
      }
  for (std::int64_t i = 0; i < dim; i += 4) store(i, load(i) * factor);
}

}  // namespace octavo::cpu
