// NEON of ARMv8: eight f32 in a vector of two registers.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace octavo::cpu {
namespace {  // anonymous, so that each source file has a separate copy, compiled for its instruction set

struct Neon {
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6;
  static constexpr bool kDot = false;
  using F = float32x4x2_t;
  using Pairs = uint32x4x2_t;  // pairs of bf16
  using Ints = uint32x4x2_t;   // a lane has 32 bits or four bytes
  using Mask = uint32x4x2_t;

  static F zero() { return set(0); }
  static F set(float x) { return {{vdupq_n_f32(x), vdupq_n_f32(x)}}; }
  static F load_f32(const void* p) {
    const auto* from = static_cast<const float*>(p);
    return {{vld1q_f32(from), vld1q_f32(from + 4)}};
  }
  static F load_bf16(const void* p) {
    const uint16x8_t halves = vld1q_u16(static_cast<const std::uint16_t*>(p));
    return as_floats({{vshll_n_u16(vget_low_u16(halves), 16), vshll_n_u16(vget_high_u16(halves), 16)}});
  }
  static F load_f16(const void* p) {
    const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(static_cast<const std::uint16_t*>(p)));
    return {{vcvt_f32_f16(vget_low_f16(halves)), vcvt_f32_f16(vget_high_f16(halves))}};
  }
  static void store_f32(void* p, F x) {
    auto* to = static_cast<float*>(p);
    vst1q_f32(to, x.val[0]);
    vst1q_f32(to + 4, x.val[1]);
  }
  static void store_bf16(void* p, F x) {
    vst1q_u16(static_cast<std::uint16_t*>(p), vcombine_u16(narrowed(x.val[0]), narrowed(x.val[1])));
  }
  static void store_f16(void* p, F x) {
    const float16x8_t halves = vcombine_f16(vcvt_f16_f32(x.val[0]), vcvt_f16_f32(x.val[1]));
    vst1q_u16(static_cast<std::uint16_t*>(p), vreinterpretq_u16_f16(halves));
  }

  static Pairs load_pairs(const void* p) {
    const auto* from = static_cast<const std::uint32_t*>(p);
    return {{vld1q_u32(from), vld1q_u32(from + 4)}};
  }
  // Converts two bytes per lane to bf16, exactly.
  static Pairs pairs_e4m3(const void* p) {
    const uint8x16_t bytes = vld1q_u8(static_cast<const std::uint8_t*>(p));
    const auto pairs = [](uint16x8_t x) {
      const uint32x4_t both = vreinterpretq_u32_u16(x);
      return joined(from_e4m3(vandq_u32(both, vdupq_n_u32(0xff))), from_e4m3(vshrq_n_u32(both, 16)));
    };
    return {{pairs(vmovl_u8(vget_low_u8(bytes))), pairs(vmovl_u8(vget_high_u8(bytes)))}};
  }
  static Pairs pairs_i8(const void* p) {
    const int8x16_t bytes = vld1q_s8(static_cast<const std::int8_t*>(p));
    const auto pairs = [](int16x8_t x) {
      const int32x4_t both = vreinterpretq_s32_s16(x);
      return joined(vcvtq_f32_s32(vshrq_n_s32(vshlq_n_s32(both, 16), 16)),
                    vcvtq_f32_s32(vshrq_n_s32(both, 16)));
    };
    return {{pairs(vmovl_s8(vget_low_s8(bytes))), pairs(vmovl_s8(vget_high_s8(bytes)))}};
  }
  static F low(Pairs x) { return as_floats({{vshlq_n_u32(x.val[0], 16), vshlq_n_u32(x.val[1], 16)}}); }
  static F high(Pairs x) {
    const uint32x4_t upper = vdupq_n_u32(0xffff0000);
    return as_floats({{vandq_u32(x.val[0], upper), vandq_u32(x.val[1], upper)}});
  }

  static F add(F a, F b) { return {{vaddq_f32(a.val[0], b.val[0]), vaddq_f32(a.val[1], b.val[1])}}; }
  static F sub(F a, F b) { return {{vsubq_f32(a.val[0], b.val[0]), vsubq_f32(a.val[1], b.val[1])}}; }
  static F mul(F a, F b) { return {{vmulq_f32(a.val[0], b.val[0]), vmulq_f32(a.val[1], b.val[1])}}; }
  static F div(F a, F b) { return {{vdivq_f32(a.val[0], b.val[0]), vdivq_f32(a.val[1], b.val[1])}}; }
  static F fma(F a, F b, F c) {
    return {{vfmaq_f32(c.val[0], a.val[0], b.val[0]), vfmaq_f32(c.val[1], a.val[1], b.val[1])}};
  }
  // The result of max and min is NaN if b is NaN.
  static F max(F a, F b) { return select(less(b, a), a, b); }
  static F min(F a, F b) { return select(less(a, b), a, b); }
  static F abs(F x) { return {{vabsq_f32(x.val[0]), vabsq_f32(x.val[1])}}; }
  static F with_sign_of(F sign, F magnitude) {
    const uint32x4_t bit = vdupq_n_u32(0x80000000);
    return {{vbslq_f32(bit, sign.val[0], magnitude.val[0]), vbslq_f32(bit, sign.val[1], magnitude.val[1])}};
  }
  static F round(F x) { return {{vrndnq_f32(x.val[0]), vrndnq_f32(x.val[1])}}; }
  // Returns x * 2^n for x in [0.7, 1.5] and integer n in [kVanishing, 128]. For n = kVanishing the result
  // is 0; for n = 128 it is infinity.
  static constexpr float kVanishing = -127;
  static F times_pow2(F x, F n) { return mul(x, {{power(n.val[0]), power(n.val[1])}}); }
  static Mask less(F a, F b) { return {{vcltq_f32(a.val[0], b.val[0]), vcltq_f32(a.val[1], b.val[1])}}; }
  static Mask lanes_in(std::int64_t begin, std::int64_t end) {  // lanes i with begin <= i < end
    constexpr std::int32_t kLane[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int32x4_t from = vdupq_n_s32(clamp(begin));
    const int32x4_t to = vdupq_n_s32(clamp(end));
    const auto inside = [&](int32x4_t lane) { return vandq_u32(vcgeq_s32(lane, from), vcltq_s32(lane, to)); };
    return {{inside(vld1q_s32(kLane)), inside(vld1q_s32(kLane + 4))}};
  }
  static F select(Mask mask, F yes, F no) {
    return {{vbslq_f32(mask.val[0], yes.val[0], no.val[0]), vbslq_f32(mask.val[1], yes.val[1], no.val[1])}};
  }

  static Ints set_int(int x) {
    const uint32x4_t all = vreinterpretq_u32_s32(vdupq_n_s32(x));
    return {{all, all}};
  }
  static Ints load_ints(const void* p) { return load_pairs(p); }
  static Ints load_u8(const void* p) {
    const uint16x8_t x = vmovl_u8(vld1_u8(static_cast<const std::uint8_t*>(p)));
    return {{vmovl_u16(vget_low_u16(x)), vmovl_u16(vget_high_u16(x))}};
  }
  static Ints load_i8(const void* p) {
    const int16x8_t x = vmovl_s8(vld1_s8(static_cast<const std::int8_t*>(p)));
    return {{vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(x))),
             vreinterpretq_u32_s32(vmovl_s16(vget_high_s16(x)))}};
  }
  static F floats(Ints x) {
    return {{vcvtq_f32_s32(vreinterpretq_s32_u32(x.val[0])), vcvtq_f32_s32(vreinterpretq_s32_u32(x.val[1]))}};
  }
  // Returns (byte >> kShift) & kMask for every byte; a negative kShift shifts left. kMask must exclude all
  // bits that are shifted in from a neighbouring byte.
  template <int kShift, int kMask>
  static Ints bits(Ints x) {
    const uint32x4_t mask = vreinterpretq_u32_u8(vdupq_n_u8(kMask));
    for (uint32x4_t& half : x.val) {
      if constexpr (kShift > 0) half = vshrq_n_u32(half, kShift);
      if constexpr (kShift < 0) half = vshlq_n_u32(half, -kShift);
      half = vandq_u32(half, mask);
    }
    return x;
  }
  // Stores each lane, which must be an integer, as a signed byte.
  static void store_i8(void* p, F x) {
    const int16x8_t words =
        vcombine_s16(vmovn_s32(vcvtq_s32_f32(x.val[0])), vmovn_s32(vcvtq_s32_f32(x.val[1])));
    vst1_s8(static_cast<std::int8_t*>(p), vmovn_s16(words));
  }
  static Ints join(Ints a, Ints b) {
    return {{vorrq_u32(a.val[0], b.val[0]), vorrq_u32(a.val[1], b.val[1])}};
  }
  // Replaces every byte, which must be below 16, by table[byte].
  static Ints lookup(Ints x, const void* table) {
    const uint8x16_t values = vld1q_u8(static_cast<const std::uint8_t*>(table));
    for (uint32x4_t& half : x.val)
      half = vreinterpretq_u32_u8(vqtbl1q_u8(values, vreinterpretq_u8_u32(half)));
    return x;
  }
  // Returns sum + the products of four unsigned bytes (a) and four signed bytes (b) per lane, exactly.
  // kSmall means that the unsigned bytes are below 128.
  template <bool kSmall>
  static Ints dot_quads(Ints sum, Ints a, Ints b) {
    return {{dot_quads(sum.val[0], a.val[0], b.val[0]), dot_quads(sum.val[1], a.val[1], b.val[1])}};
  }

  static float sum(F x) { return vaddvq_f32(vaddq_f32(x.val[0], x.val[1])); }
  static float maximum(F x) { return vmaxvq_f32(vmaxq_f32(x.val[0], x.val[1])); }

 private:
  // Makes bf16 pairs from the upper halves of both arguments.
  static uint32x4_t joined(float32x4_t low_half, float32x4_t high_half) {
    return vbslq_u32(vdupq_n_u32(0xffff0000), vreinterpretq_u32_f32(high_half),
                     vshrq_n_u32(vreinterpretq_u32_f32(low_half), 16));
  }
  static float32x4_t from_e4m3(uint32x4_t bits) {
    const uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(0x7f));
    const uint32x4_t sign = vshlq_n_u32(vsubq_u32(bits, magnitude), 24);
    const float32x4_t value =
        vmulq_f32(vreinterpretq_f32_u32(vshlq_n_u32(magnitude, 20)), vdupq_n_f32(0x1p120f));
    const uint32x4_t nan = vceqq_u32(magnitude, vdupq_n_u32(0x7f));
    return vreinterpretq_f32_u32(vorrq_u32(vorrq_u32(vreinterpretq_u32_f32(value), nan), sign));
  }
  static uint32x4_t dot_quads(uint32x4_t sum, uint32x4_t a, uint32x4_t b) {
    const uint8x16_t u = vreinterpretq_u8_u32(a);
    const int8x16_t s = vreinterpretq_s8_u32(b);
    const auto products = [](uint8x8_t x, int8x8_t y) {
      const int16x8_t wide = vreinterpretq_s16_u16(vmovl_u8(x));
      const int16x8_t other = vmovl_s8(y);
      return vpaddq_s32(vmull_s16(vget_low_s16(wide), vget_low_s16(other)),
                        vmull_s16(vget_high_s16(wide), vget_high_s16(other)));
    };
    const int32x4_t quads =
        vpaddq_s32(products(vget_low_u8(u), vget_low_s8(s)), products(vget_high_u8(u), vget_high_s8(s)));
    return vaddq_u32(sum, vreinterpretq_u32_s32(quads));
  }
  static F as_floats(uint32x4x2_t bits) {
    return {{vreinterpretq_f32_u32(bits.val[0]), vreinterpretq_f32_u32(bits.val[1])}};
  }
  // Rounds to bf16, to nearest with ties to even. NaN stays NaN.
  static uint16x4_t narrowed(float32x4_t x) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
  }
  static float32x4_t power(float32x4_t n) {
    const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
  }
  static int clamp(std::int64_t i) { return static_cast<int>(i < 0 ? 0 : i > kLanes ? kLanes : i); }
};

}  // namespace
}  // namespace octavo::cpu
