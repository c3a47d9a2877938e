// NEON with the bf16 and i8mm instructions of ARMv8.6.
#pragma once

#include "kernels/cpu/simd_neon.h"

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct NeonBf16 : Neon {
  static constexpr bool kDot = true;

  static void store_bf16(void* p, F x) {
    const bfloat16x8_t low = vcvtq_low_bf16_f32(x.val[0]);
    vst1q_bf16(static_cast<bfloat16_t*>(p), vcvtq_high_bf16_f32(low, x.val[1]));
  }
  static Pairs broadcast_pair(const void* p) {
    std::uint32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return {{vdupq_n_u32(pair), vdupq_n_u32(pair)}};
  }
  static F dot(F sum, Pairs a, Pairs b) {
    return {{vbfdotq_f32(sum.val[0], numbers(a.val[0]), numbers(b.val[0])),
             vbfdotq_f32(sum.val[1], numbers(a.val[1]), numbers(b.val[1]))}};
  }
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
    const auto dot_of = [](uint32x4_t total, uint32x4_t u, uint32x4_t s) {
      return vreinterpretq_u32_s32(
          vusdotq_s32(vreinterpretq_s32_u32(total), vreinterpretq_u8_u32(u), vreinterpretq_s8_u32(s)));
    };
    return {{dot_of(sum.val[0], a.val[0], b.val[0]), dot_of(sum.val[1], a.val[1], b.val[1])}};
  }

 private:
  static bfloat16x8_t numbers(uint32x4_t pairs) { return vreinterpretq_bf16_u32(pairs); }
};

}  // namespace
}  // namespace octavo::cpu
