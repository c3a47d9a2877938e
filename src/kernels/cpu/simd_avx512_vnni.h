// AVX-512 with dot products of bytes.
#pragma once

#include "kernels/cpu/simd_avx512.h"

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct Avx512Vnni : Avx512 {
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
    return _mm512_dpbusd_epi32(sum, a, b);
  }
};

}  // namespace
}  // namespace octavo::cpu
