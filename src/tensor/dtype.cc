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
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
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

Float16 to_f16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<std::uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {static_cast<std::uint16_t>(sign | 0x7c00)};  // rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal: count units of 2^-24, ties to even
    const float units = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(units))};
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13))};
}

}  // namespace octavo
