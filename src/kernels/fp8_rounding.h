// Rounding of activations to e4m3 (fp8), for products with fp8 weights; all backends that round use it.
//
// A product with an fp8 matrix may round the rows of x first: number = scale * code, where code is the
// nearest e4m3 number, and consecutive columns share a scale. Then both operands have 8 bits, as vLLM's
// products with fp8 checkpoints (W8A8). The scale is the checkpoint's, or the scale that maps the largest
// magnitude to 448.
#pragma once

#include <cstdint>

#include "kernels/on_device.h"

namespace octavo {

// How a product rounds x.
struct Fp8Rounding {
  std::int64_t group =
      0;  // number of columns that share a scale, also in the last group; 0: x is not rounded
  // Scale of all numbers; 0: each group has the scale fp8_scale(). A product of experts uses the largest
  // scale of its experts.
  float scale = 0;

  OCTAVO_HOST_DEVICE std::int64_t groups(std::int64_t cols) const { return (cols + group - 1) / group; }
};

// Smaller groups of columns are not supported, because sums of tensor cores are promoted to f32 after this
// number of columns.
constexpr std::int64_t kFp8Columns = 128;

// Returns the scale of a group with this largest magnitude. Magnitudes below 1e-10 count as 1e-10, as in
// vLLM.
OCTAVO_HOST_DEVICE constexpr float fp8_scale(float largest) {
  return (largest > 1e-10f ? largest : 1e-10f) / 448.0f;
}

}  // namespace octavo
