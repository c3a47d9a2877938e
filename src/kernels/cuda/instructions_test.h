// Kernels that run instructions for instructions_test.cc.
#pragma once

#include "kernels/cuda/kernels.h"

namespace octavo::cuda {

constexpr int kProductRows = 64, kProductSide = 128;

// In the chains of attention, one product by a warpgroup's instructions and by a warp's.
// a [64, 128], b [128, 128] of 16 bits in `format`. by_warpgroup and by_warp, of device memory, each: a * b^T [64, 128],
// then a * b [64, 128], in steps of 16 columns of a.
void multiply_both_ways(StreamHandle stream, Format format, const void* a, const void* b, float* by_warpgroup,
                        float* by_warp);

// All 256 codes of fp8 to numbers of 16 bits in `format`.
void convert_codes(StreamHandle stream, Format format, void* numbers);

}  // namespace octavo::cuda
