// AVX-512 with dot products of bytes and of bf16 pairs.
#pragma once

#include "kernels/cpu/simd_avx512_vnni.h"

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct Avx512Bf16 : Avx512Vnni {
  static constexpr bool kDot = true;

  static void store_bf16(void* p, F x) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x));
  }
  static Pairs broadcast_pair(const void* p) {
    int pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  static F dot(F sum, Pairs a, Pairs b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
};

}  // namespace
}  // namespace octavo::cpu
