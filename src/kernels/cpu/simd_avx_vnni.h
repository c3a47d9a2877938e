// AVX2 with dot products of bytes. The compiler flags of the source file select the VEX or EVEX encoding.
#pragma once

#include "kernels/cpu/simd_avx2.h"

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct AvxVnni : Avx2 {
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(sum, a, b);
#else
    return _mm256_dpbusd_epi32(sum, a, b);
#endif
  }
};

}  // namespace
}  // namespace octavo::cpu
