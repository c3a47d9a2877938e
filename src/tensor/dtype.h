// Number formats of tensor elements, and conversions of single numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octavo {

// i4: codes of 4 bits, two in a byte, only for KV caches (kernels/kv_quant.h).
enum class DType : std::uint8_t { f32, f16, bf16, f8_e4m3, i8, u8, i32, i64, i4 };

// Returns the bytes of an element. An element of i4 has half a byte, so the result is 0: use bits_of().
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i64:
      return 8;
    case DType::f8_e4m3:
    case DType::i8:
    case DType::u8:
      return 1;
    case DType::i4:
      return 0;
  }
  return 0;
}

constexpr int bits_of(DType type) { return type == DType::i4 ? 4 : static_cast<int>(8 * size_of(type)); }

std::string_view name(DType type);

// bfloat16: the upper half of an f32.
struct BFloat16 {
  std::uint16_t bits = 0;
};

// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits = 0;
};

// 8-bit float with 4 exponent bits and 3 fraction bits, without infinities. The largest number is 448 (OCP
// OFP8).
struct Float8E4M3 {
  std::uint8_t bits = 0;
};

constexpr float to_f32(float x) { return x; }
constexpr float to_f32(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
float to_f32(Float16 x);
float to_f32(Float8E4M3 x);

// Rounds to nearest, ties to even; NaN stays NaN.
constexpr BFloat16 to_bf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}
Float16 to_f16(float x);
// Rounds to nearest, ties to even. Numbers beyond +-448 become +-448; NaN stays NaN.
Float8E4M3 to_f8_e4m3(float x);

template <class T>
constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no DType for this type");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<Float16> = DType::f16;
template <>
inline constexpr DType dtype_of<Float8E4M3> = DType::f8_e4m3;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;

}  // namespace octavo
