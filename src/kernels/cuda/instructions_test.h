// Kernels that run single instructions, for instructions_test.cc.
#pragma once

#include "kernels/cuda/kernels.h"

namespace octavo::cuda {

constexpr int kProductRows = 64, kProductSide = 128;

// Computes products with warpgroup instructions and with warp instructions, in the order of attention. The
// operands a [64, 128] and b [128, 128] have the 16-bit format `format`. The results by_warpgroup and
// by_warp are in device memory: first a * b^T [64, 128], then a * b [64, 128], in steps of 16 columns of a.
void multiply_both_ways(StreamHandle stream, Format format, const void* a, const void* b, float* by_warpgroup,
                        float* by_warp);

// Computes a * b^T [16, 8] with e4m3 instructions, and with f16 instructions and the same numbers. The
// operands a [16, 32] and b [8, 32] have e4m3 numbers.
void multiply_e4m3_both_ways(StreamHandle stream, const void* a, const void* b, float* by_bytes,
                             float* widened);

// Converts all 256 fp8 codes to 16-bit numbers in `format`.
void convert_codes(StreamHandle stream, Format format, void* numbers);

}  // namespace octavo::cuda
