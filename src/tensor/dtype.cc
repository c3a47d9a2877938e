#include "tensor/dtype.h"

#include <cmath>

namespace octavo {

std::string_view name(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f8_e4m3:
      return "f8_e4m3";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::i4:
      return "i4";
  }
  return "?";
}

float to_f32(Float16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1f;
  const std::uint32_t fraction = x.bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t widened = exponent == 31 ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

float to_f32(Float8E4M3 x) {
  const std::uint32_t magnitude = x.bits & 0x7f;
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x80) << 24;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000);
  // Multiplying by 2^120 changes the exponent bias from 7 to 127.
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 20) * 0x1p120f));
}

Float8E4M3 to_f8_e4m3(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80);
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffff);
  if (std::isnan(x)) return {static_cast<std::uint8_t>(sign | 0x7f)};
  if (magnitude >= 448) return {static_cast<std::uint8_t>(sign | 0x7e)};
  if (magnitude < 0x1p-6f)  // Subnormal numbers are multiples of 2^-9.
    return {static_cast<std::uint8_t>(sign | static_cast<std::uint8_t>(std::nearbyint(magnitude * 0x1p9f)))};
  const std::uint32_t rounded = (bits & 0x7fffffff) + 0x7ffff + (bits >> 20 & 1);
  return {static_cast<std::uint8_t>(sign | ((rounded >> 20) - (120 << 3)))};
}

Float16 to_f16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  // The number is above the largest f16 and becomes infinity.
  if (magnitude >= 0x477ff000) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000) {  // The result is subnormal: a multiple of 2^-24.
    const float units = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(units))};
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13))};
}

}  // namespace octavo
