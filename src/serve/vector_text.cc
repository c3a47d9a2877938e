#include "serve/vector_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cmath>
#include <cstdint>

#include "base/base64.h"
#include "tensor/dtype.h"

namespace octavo {
namespace {

using VectorType = openai::EmbedByTypeRequest::Type;

// Returns the bits of an 8-bit float with 5 exponent bits and 2 fraction bits (OCP OFP8). Rounds to nearest,
// ties to even.
std::uint8_t to_f8_e5m2(float x) {
  constexpr std::uint16_t kTie = 0x80;  // fraction bits of a binary16 in the middle of two results
  Float16 half = to_f16(x);
  // If x is not in the middle, but its binary16 is, the second rounding would not know the side of x.
  if ((half.bits & 0xff) == kTie) {
    const float rounded = std::abs(to_f32(half)), exact = std::abs(x);
    if (rounded < exact) ++half.bits;
    if (rounded > exact) --half.bits;
  }
  return static_cast<std::uint8_t>((half.bits + 0x7f + ((half.bits >> 8) & 1)) >> 8);
}

template <class Number>
void pack(Number number, bool swapped, std::string& out) {
  auto bytes = std::bit_cast<std::array<char, sizeof(Number)>>(number);
  if (swapped) std::ranges::reverse(bytes);
  out.append(bytes.data(), bytes.size());
}

// Returns a JSON list of bytes with one bit for each number: 1 if the number is above 0. The first number is
// the highest bit of the first byte. shift: subtracted from each byte (128: the bytes are signed).
std::string bits(const std::vector<float>& vector, int shift) {
  std::vector<int> bytes((vector.size() + 7) / 8, -shift);
  for (std::size_t i = 0; i < vector.size(); ++i) bytes[i / 8] += vector[i] > 0 ? 128 >> (i % 8) : 0;
  return fmt::format("[{}]", fmt::join(bytes, ","));
}

}  // namespace

std::string json_text(std::string_view text) { return boost::json::serialize(boost::json::string(text)); }

std::string numbers(std::span<const float> vector) { return fmt::format("[{}]", fmt::join(vector, ",")); }

std::string packed(std::span<const float> vector, const openai::VectorFormat& format) {
  using Format = openai::VectorFormat;
  constexpr Format::Order kNative =
      std::endian::native == std::endian::little ? Format::Order::little : Format::Order::big;
  const bool swapped = format.order != Format::Order::native && format.order != kNative;
  std::string bytes;
  for (const float x : vector) switch (format.number) {
      case Format::Number::float32:
        pack(x, swapped, bytes);
        break;
      case Format::Number::float16:
        pack(to_f16(x).bits, swapped, bytes);
        break;
      case Format::Number::bfloat16:
        pack(to_bf16(x).bits, swapped, bytes);
        break;
      case Format::Number::fp8_e4m3:
        pack(to_f8_e4m3(x).bits, swapped, bytes);
        break;
      case Format::Number::fp8_e5m2:
        pack(to_f8_e5m2(x), swapped, bytes);
        break;
    }
  return bytes;
}

std::string base64(std::span<const float> vector, const openai::VectorFormat& format) {
  return '"' + encode_base64(packed(vector, format)) + '"';
}

std::string lists(const std::vector<float>& vectors, std::size_t size) {
  return fmt::format("[{}]", joined(vectors.size() / size, [&](std::size_t i) {
                       return numbers(std::span(vectors).subspan(i * size, size));
                     }));
}

std::string_view name_of(VectorType type) {
  constexpr std::string_view kNames[] = {"float", "base64", "binary", "ubinary"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string vector_text(VectorType type, const std::vector<float>& vector) {
  switch (type) {
    case VectorType::float32:
      return numbers(vector);
    case VectorType::base64:
      return base64(vector);
    case VectorType::binary:
      return bits(vector, 128);
    case VectorType::ubinary:
      break;
  }
  return bits(vector, 0);
}

}  // namespace octavo
