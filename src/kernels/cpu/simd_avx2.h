// AVX2 with FMA and F16C: eight f32 in a vector.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct Avx2 {
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6;
  static constexpr bool kDot = false;
  using F = __m256;
  using Pairs = __m256i;
  using Ints = __m256i;  // a lane has 32 bits or four bytes
  using Mask = __m256;

  static F zero() { return _mm256_setzero_ps(); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F load_f32(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
  static F load_bf16(const void* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half_of(p)), 16));
  }
  static F load_f16(const void* p) { return _mm256_cvtph_ps(half_of(p)); }
  static void store_f32(void* p, F x) { _mm256_storeu_ps(static_cast<float*>(p), x); }
  static void store_bf16(void* p, F x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static void store_f16(void* p, F x) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }

  static Pairs load_pairs(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  // Converts two bytes per lane to bf16, exactly.
  static Pairs pairs_e4m3(const void* p) {
    const __m256i x = _mm256_cvtepu8_epi16(half_of(p));
    return joined(from_e4m3(_mm256_and_si256(x, _mm256_set1_epi32(0xff))),
                  from_e4m3(_mm256_srli_epi32(x, 16)));
  }
  static Pairs pairs_i8(const void* p) {
    const __m256i x = _mm256_cvtepi8_epi16(half_of(p));
    return joined(_mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(x, 16), 16)),
                  _mm256_cvtepi32_ps(_mm256_srai_epi32(x, 16)));
  }
  static F low(Pairs x) { return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)); }
  static F high(Pairs x) {
    return _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }

  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  // The result of max and min is NaN if b is NaN.
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F abs(F x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  static F with_sign_of(F sign, F magnitude) {
    return _mm256_or_ps(_mm256_and_ps(_mm256_set1_ps(-0.0f), sign), magnitude);
  }
  static F round(F x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // Returns x * 2^n for x in [0.7, 1.5] and integer n in [kVanishing, 128]. For n = kVanishing the result
  // is 0; for n = 128 it is infinity.
  static constexpr float kVanishing = -127;
  static F times_pow2(F x, F n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static Mask less(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static Mask lanes_in(std::int64_t begin, std::int64_t end) {  // lanes i with begin <= i < end
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i from = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(clamp(begin) - 1));
    const __m256i to = _mm256_cmpgt_epi32(_mm256_set1_epi32(clamp(end)), lane);
    return _mm256_castsi256_ps(_mm256_and_si256(from, to));
  }
  static F select(Mask mask, F yes, F no) { return _mm256_blendv_ps(no, yes, mask); }

  static Ints set_int(int x) { return _mm256_set1_epi32(x); }
  static Ints load_ints(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static Ints load_u8(const void* p) { return _mm256_cvtepu8_epi32(quarter_of(p)); }
  static Ints load_i8(const void* p) { return _mm256_cvtepi8_epi32(quarter_of(p)); }
  static F floats(Ints x) { return _mm256_cvtepi32_ps(x); }
  // Returns (byte >> kShift) & kMask for every byte; a negative kShift shifts left. kMask must exclude all
  // bits that are shifted in from a neighbouring byte.
  template <int kShift, int kMask>
  static Ints bits(Ints x) {
    if constexpr (kShift > 0) x = _mm256_srli_epi16(x, kShift);
    if constexpr (kShift < 0) x = _mm256_slli_epi16(x, -kShift);
    return _mm256_and_si256(x, _mm256_set1_epi8(kMask));
  }
  // Stores each lane, which must be an integer, as a signed byte.
  static void store_i8(void* p, F x) {
    const __m256i ints = _mm256_cvtps_epi32(x);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
  static Ints join(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  // Replaces every byte, which must be below 16, by table[byte].
  static Ints lookup(Ints x, const void* table) {
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_load_si128(static_cast<const __m128i*>(table))), x);
  }
  // Returns sum + the products of four unsigned bytes (a) and four signed bytes (b) per lane, exactly.
  // kSmall means that the unsigned bytes are below 128.
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
    if constexpr (kSmall)
      return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
    const Ints even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(0xff)),
                                        _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    const Ints odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
  }

  static float sum(F x) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float maximum(F x) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }

 private:
  static F from_e4m3(__m256i bits) {
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f));
    const __m256i sign = _mm256_slli_epi32(_mm256_sub_epi32(bits, magnitude), 24);
    const F value = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(magnitude, 20)), set(0x1p120f));
    const __m256i nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f));
    return _mm256_or_ps(_mm256_or_ps(value, _mm256_castsi256_ps(nan)), _mm256_castsi256_ps(sign));
  }
  // Makes bf16 pairs from the upper halves of both arguments.
  static Pairs joined(F low_half, F high_half) {
    return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(low_half), 16),
                              _mm256_castps_si256(high_half), 0xaa);
  }
  static __m128i quarter_of(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
  static __m128i half_of(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static int clamp(std::int64_t i) { return static_cast<int>(i < 0 ? 0 : i > kLanes ? kLanes : i); }
};

}  // namespace
}  // namespace octavo::cpu
