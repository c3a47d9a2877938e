// NEON with dot products of bytes, as in ARMv8.2 (FEAT_DotProd).
#pragma once

#include "kernels/cpu/simd_neon.h"

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct NeonDot : Neon {
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
    return {{dot<kSmall>(sum.val[0], a.val[0], b.val[0]), dot<kSmall>(sum.val[1], a.val[1], b.val[1])}};
  }

 private:
  // The instruction multiplies only signed bytes. If a byte of a is 128 or more, its lower seven bits and
  // its highest bit (128) are multiplied separately, the highest bit as 2 * 64.
  template <bool kSmall>
  static uint32x4_t dot(uint32x4_t sum, uint32x4_t a, uint32x4_t b) {
    const int8x16_t s = vreinterpretq_s8_u32(b);
    const uint8x16_t u = vreinterpretq_u8_u32(a);
    int32x4_t total = vreinterpretq_s32_u32(sum);
    if constexpr (kSmall) {
      total = vdotq_s32(total, vreinterpretq_s8_u8(u), s);
    } else {
      const int8x16_t half = vreinterpretq_s8_u8(vshrq_n_u8(vandq_u8(u, vdupq_n_u8(0x80)), 1));
      total = vdotq_s32(total, vreinterpretq_s8_u8(vandq_u8(u, vdupq_n_u8(0x7f))), s);
      total = vdotq_s32(vdotq_s32(total, half, s), half, s);
    }
    return vreinterpretq_u32_s32(total);
  }
};

}  // namespace
}  // namespace octavo::cpu
