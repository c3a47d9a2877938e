// AVX-512 (F, BW, VL, DQ): sixteen f32 in a vector.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct Avx512 {
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 12;
  static constexpr bool kDot = false;
  using F = __m512;
  using Pairs = __m512i;
  using Ints = __m512i;  // a lane has 32 bits or four bytes
  using Mask = __mmask16;
  using Mask32 = __mmask32;

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F load_f32(const void* p) { return _mm512_loadu_ps(p); }
  static F load_bf16(const void* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half_of(p)), 16));
  }
  static F load_f16(const void* p) { return _mm512_cvtph_ps(half_of(p)); }
  static void store_f32(void* p, F x) { _mm512_storeu_ps(p, x); }
  static void store_bf16(void* p, F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const Mask nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i high = _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16);
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(high));
  }
  static void store_f16(void* p, F x) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }

  static Pairs load_pairs(const void* p) { return _mm512_loadu_si512(p); }
  // Converts two bytes per lane to bf16, exactly.
  static Pairs pairs_e4m3(const void* p) {
    const __m512i x = _mm512_cvtepu8_epi16(half_of(p));
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7f));
    // Subnormal numbers (0 to 7) and NaN (0x7f) are looked up by their lowest five bits.
    const __m512i table = _mm512_inserti32x4(
        _mm512_castsi128_si512(_mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60)),
        _mm_set1_epi16(0x7fc0), 3);
    const Mask32 special = _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(magnitude, _mm512_set1_epi16(8)),
                                                   _mm512_set1_epi16(0x7e - 8));
    __m512i y = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
    y = _mm512_mask_permutexvar_epi16(y, special, x, table);
    // y | (sign & 0x8000)
    return _mm512_ternarylogic_epi32(y, _mm512_slli_epi16(x, 8), _mm512_set1_epi16(-0x8000), 0xf8);
  }
  static Pairs pairs_i8(const void* p) {
    const __m512i x = _mm512_cvtepi8_epi16(half_of(p));
    const F low_half = _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(x, 16), 16));
    const F high_half = _mm512_cvtepi32_ps(_mm512_srai_epi32(x, 16));
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(low_half), 16),
                           _mm512_castps_si512(high_half));
  }
  static F low(Pairs x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
  static F high(Pairs x) {
    return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  // The result of max and min is NaN if b is NaN.
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F abs(F x) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x); }
  static F with_sign_of(F sign, F magnitude) {
    return _mm512_or_ps(_mm512_and_ps(_mm512_set1_ps(-0.0f), sign), magnitude);
  }
  static F round(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // Returns x * 2^n for x in [0.7, 1.5] and integer n in [kVanishing, 128]. For n = kVanishing the result
  // is 0; for n = 128 it is infinity.
  static constexpr float kVanishing = -200;
  static F times_pow2(F x, F n) { return _mm512_scalef_ps(x, n); }
  static Mask less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Mask lanes_in(std::int64_t begin, std::int64_t end) {  // lanes i with begin <= i < end
    return static_cast<Mask>(lanes_below(end) & ~lanes_below(begin));
  }
  static F select(Mask mask, F yes, F no) { return _mm512_mask_mov_ps(no, mask, yes); }

  static Ints set_int(int x) { return _mm512_set1_epi32(x); }
  static Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
  static void store_ints(void* p, Ints x) { _mm512_storeu_si512(p, x); }
  // Stores a whole cache line without reading it first.
  static void stream(void* p, Ints x) { _mm512_stream_si512(static_cast<__m512i*>(p), x); }
  // Subtracts `b` from every byte.
  static Ints sub_bytes(Ints a, int b) { return _mm512_sub_epi8(a, _mm512_set1_epi8(static_cast<char>(b))); }
  static Ints load_u8(const void* p) { return _mm512_cvtepu8_epi32(quarter_of(p)); }
  static Ints load_i8(const void* p) { return _mm512_cvtepi8_epi32(quarter_of(p)); }
  static F floats(Ints x) { return _mm512_cvtepi32_ps(x); }
  // Returns (byte >> kShift) & kMask for every byte; a negative kShift shifts left. kMask must exclude all
  // bits that are shifted in from a neighbouring byte.
  template <int kShift, int kMask>
  static Ints bits(Ints x) {
    if constexpr (kShift > 0) x = _mm512_srli_epi16(x, kShift);
    if constexpr (kShift < 0) x = _mm512_slli_epi16(x, -kShift);
    return _mm512_and_si512(x, _mm512_set1_epi8(kMask));
  }
  // Stores each lane, which must be an integer, as a signed byte.
  static void store_i8(void* p, F x) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
  }
  static Ints join(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  // Replaces every byte, which must be below 16, by table[byte].
  static Ints lookup(Ints x, const void* table) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_load_si128(static_cast<const __m128i*>(table))), x);
  }
  // Returns sum + the products of four unsigned bytes (a) and four signed bytes (b) per lane, exactly.
  // kSmall means that the unsigned bytes are below 128.
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
    if constexpr (kSmall)
      return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
    const Ints even = _mm512_madd_epi16(_mm512_and_si512(a, _mm512_set1_epi16(0xff)),
                                        _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8));
    const Ints odd = _mm512_madd_epi16(_mm512_srli_epi16(a, 8), _mm512_srai_epi16(b, 8));
    return _mm512_add_epi32(sum, _mm512_add_epi32(even, odd));
  }

  static float sum(F x) { return _mm512_reduce_add_ps(x); }
  static float maximum(F x) { return _mm512_reduce_max_ps(x); }

 private:
  static __m128i quarter_of(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static __m256i half_of(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static unsigned lanes_below(std::int64_t i) { return i <= 0 ? 0u : i >= kLanes ? 0xffffu : (1u << i) - 1; }
};

}  // namespace
}  // namespace octavo::cpu
