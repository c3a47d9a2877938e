#include "tensor/dequantize.h"

#include <cstring>

#include "tensor/codebook_blocks.h"

namespace octavo {
namespace {

Float16 negated(Float16 x) { return {static_cast<std::uint16_t>(x.bits ^ 0x8000)}; }

// Reads kCount numbers of kBits bits. The lowest bits of the first kRun bytes store the numbers 0 .. kRun -
// 1, the next bits of these bytes store the next kRun numbers, and so on. The following bytes repeat this
// layout. If kShift is 0, the numbers become the codes. Otherwise they are shifted left by kShift and added
// to the codes.
template <int kBits, int kRun, int kCount, int kShift = 0>
void spread(const std::uint8_t* bytes, std::uint8_t* codes) {
  constexpr int kPerByte = 8 / kBits, kMask = (1 << kBits) - 1;
  static_assert(kCount % (kRun * kPerByte) == 0);
  for (int begin = 0; begin < kCount; begin += kRun * kPerByte, bytes += kRun)
    for (int part = 0; part < kPerByte; ++part, codes += kRun)
      for (int i = 0; i < kRun; ++i) {
        const int number = bytes[i] >> part * kBits & kMask;
        codes[i] = static_cast<std::uint8_t>(kShift == 0 ? number : codes[i] | number << kShift);
      }
}

// Moves bit i of a 32-bit little-endian word to bit 4 of code i.
void spread_fifth_bits(const std::uint8_t* bytes, std::uint8_t* codes) {
  constexpr std::uint64_t kEach = 0x0101010101010101, kBitOfEach = 0x8040201008040201;
  for (int i = 0; i < 4; ++i, codes += 8) {
    // byte n is not 0 if bit n of bytes[i] is set
    const std::uint64_t bits = (bytes[i] * kEach) & kBitOfEach;
    std::uint64_t eight;
    std::memcpy(&eight, codes, sizeof eight);
    eight |= ((bits + 0x7f * kEach) & (0x80 * kEach)) >> 3;
    std::memcpy(codes, &eight, sizeof eight);
  }
}

// Reads the eight scales and eight mins of Q4_K and Q5_K: 6 bits each, in 12 bytes.
void six_bit_scales(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t i = 0; i < 4; ++i) {
    block.scales[i] = static_cast<std::int8_t>(bytes[i] & 63);
    block.mins[i] = static_cast<std::int8_t>(bytes[i + 4] & 63);
    block.scales[i + 4] = static_cast<std::int8_t>((bytes[i + 8] & 15) | (bytes[i] >> 6 << 4));
    block.mins[i + 4] = static_cast<std::int8_t>((bytes[i + 8] >> 4) | (bytes[i + 4] >> 6 << 4));
  }
}

// Reads the sixteen scales of Q3_K: 6 bits each, in 12 bytes. The stored value is the scale plus 32.
void signed_six_bit_scales(const std::uint8_t* bytes, QuantBlock& block) {
  std::uint8_t scales[16];
  spread<4, 8, 16>(bytes, scales);
  spread<2, 4, 16, 4>(bytes + 8, scales);
  for (std::size_t i = 0; i < 16; ++i) block.scales[i] = static_cast<std::int8_t>(scales[i] - 32);
}

// Index 0 is the first GGUF encoding, kFirstBlocks.
constexpr BlockTraits kTraits[] = {
    {.bits = 8, .group = 32, .zero = 128},                                                 // q8_0
    {.bits = 4, .group = 32, .zero = 8},                                                   // q4_0
    {.bits = 4, .group = 32, .min_at = 2},                                                 // q4_1
    {.bits = 5, .group = 32, .zero = 16},                                                  // q5_0
    {.bits = 5, .group = 32, .min_at = 2},                                                 // q5_1
    {.bits = 2, .group = 16, .scale_at = 80, .min_at = 82},                                // q2_k
    {.bits = 3, .group = 16, .zero = 4, .scale_at = 108},                                  // q3_k
    {.bits = 4, .group = 32, .min_at = 2},                                                 // q4_k
    {.bits = 5, .group = 32, .min_at = 2},                                                 // q5_k
    {.bits = 6, .group = 16, .zero = 32, .scale_at = 208},                                 // q6_k
    {.bits = 4, .group = 32, .zero = 128, .values = CodeValues::iq4},                      // iq4_nl
    {.bits = 4, .group = 32, .zero = 128, .values = CodeValues::iq4},                      // iq4_xs
    {.bits = 4, .group = 32, .zero = 16, .values = CodeValues::iq3_s},                     // iq3_s
    {.bits = 4, .group = 32, .zero = 64, .values = CodeValues::iq3_xxs, .factor = 0.25F},  // iq3_xxs
    {.bits = 3, .group = 16, .zero = 44, .values = CodeValues::iq2, .factor = 0.125F},     // iq2_s
    {.bits = 3, .group = 16, .zero = 44, .values = CodeValues::iq2, .factor = 0.125F},     // iq2_xs
    {.bits = 3, .group = 16, .zero = 44, .values = CodeValues::iq2, .factor = 0.125F},     // iq2_xxs
    {.bits = 3, .group = 16, .zero = 9, .values = CodeValues::iq1, .factor = 0.125F},      // iq1_s
    {.bits = 3,
     .group = 16,
     .zero = 9,
     .values = CodeValues::iq1,
     .factor = 0.125F,
     .scale_at = -1},                                                  // iq1_m
    {.bits = 2, .group = 256, .zero = 1, .scale_at = 52},              // tq1_0
    {.bits = 2, .group = 256, .zero = 1, .scale_at = 64},              // tq2_0
    {.bits = 1, .group = 128, .zero = 1, .values = CodeValues::sign},  // q1_0
};

void dequantize_block(Encoding encoding, const QuantBlock& block, int elements, float* out) {
  const BlockTraits& traits = block_traits(encoding);
  const std::uint8_t* values = values_of(encoding);
  for (int i = 0; i < elements; ++i) {
    const auto group = static_cast<std::size_t>(i / traits.group);
    const std::uint8_t code = block.codes[static_cast<std::size_t>(i)];
    const int v = values != nullptr ? values[code] : code;
    const float scale = traits.factor * to_f32(block.scale) * block.scales[group];
    const float product = scale * static_cast<float>(v - traits.zero);
    out[i] = traits.has_min() ? product - to_f32(block.min) * block.mins[group] : product;
  }
}

template <class T>
void widen(const View& values, std::int64_t row, float* out) {
  const T* from = values.row<T>(row);
  const std::int64_t step = values.stride[1];
  if (step == 1) {
    for (std::int64_t k = 0; k < values.size(1); ++k) out[k] = to_f32(from[k]);
  } else {
    for (std::int64_t k = 0; k < values.size(1); ++k) out[k] = to_f32(from[k * step]);
  }
}

}  // namespace

const BlockTraits& block_traits(Encoding encoding) {
  CHECK(encoding >= kFirstBlocks && encoding <= kLastBlocks, "{} has no blocks", name(encoding));
  return kTraits[static_cast<int>(encoding) - static_cast<int>(kFirstBlocks)];
}

const std::uint8_t* values_of(Encoding encoding) {
  const bool blocks = encoding >= kFirstBlocks && encoding <= kLastBlocks;
  const CodeValues values = blocks                        ? block_traits(encoding).values
                            : encoding == Encoding::mxfp4 ? CodeValues::e2m1
                                                          : CodeValues::codes;
  return values == CodeValues::codes ? nullptr : kCodeValues[static_cast<int>(values)];
}

void take_apart(Encoding encoding, const std::uint8_t* bytes, QuantBlock& block) {
  block.scales.fill(1);
  block.mins.fill(1);
  block.min = {};
  std::uint8_t* codes = block.codes.data();
  switch (encoding) {
    case Encoding::q8_0:
      block.scale = f16_at(bytes);
      for (int i = 0; i < 32; ++i) codes[i] = bytes[2 + i] ^ 0x80;
      return;
    case Encoding::q4_0:
    case Encoding::iq4_nl:
      block.scale = f16_at(bytes);
      return spread<4, 16, 32>(bytes + 2, codes);
    case Encoding::q4_1:
      block.scale = f16_at(bytes);
      block.min = negated(f16_at(bytes + 2));
      return spread<4, 16, 32>(bytes + 4, codes);
    case Encoding::q1_0:
      block.scale = f16_at(bytes);
      return spread<1, 1, 128>(bytes + 2, codes);
    case Encoding::q5_0:
      block.scale = f16_at(bytes);
      spread<4, 16, 32>(bytes + 6, codes);
      return spread_fifth_bits(bytes + 2, codes);
    case Encoding::q5_1:
      block.scale = f16_at(bytes);
      block.min = negated(f16_at(bytes + 2));
      spread<4, 16, 32>(bytes + 8, codes);
      return spread_fifth_bits(bytes + 4, codes);
    case Encoding::q2_k:
      for (std::size_t i = 0; i < 16; ++i) {
        block.scales[i] = static_cast<std::int8_t>(bytes[i] & 15);
        block.mins[i] = static_cast<std::int8_t>(bytes[i] >> 4);
      }
      block.scale = f16_at(bytes + 80);
      block.min = f16_at(bytes + 82);
      return spread<2, 32, 256>(bytes + 16, codes);
    case Encoding::q3_k:
      signed_six_bit_scales(bytes + 96, block);
      block.scale = f16_at(bytes + 108);
      spread<2, 32, 256>(bytes + 32, codes);
      return spread<1, 32, 256, 2>(bytes, codes);
    case Encoding::q4_k:
      block.scale = f16_at(bytes);
      block.min = f16_at(bytes + 2);
      six_bit_scales(bytes + 4, block);
      return spread<4, 32, 256>(bytes + 16, codes);
    case Encoding::q5_k:
      block.scale = f16_at(bytes);
      block.min = f16_at(bytes + 2);
      six_bit_scales(bytes + 4, block);
      spread<4, 32, 256>(bytes + 48, codes);
      return spread<1, 32, 256, 4>(bytes + 16, codes);
    case Encoding::q6_k:
      std::memcpy(block.scales.data(), bytes + 192, 16);
      block.scale = f16_at(bytes + 208);
      spread<4, 64, 256>(bytes, codes);
      return spread<2, 32, 256, 4>(bytes + 128, codes);
    default:
      return take_codebook_apart(encoding, bytes, block);
  }
}

void dequantize(const MatrixPart& part, std::int64_t row, float* out) {
  const std::int64_t cols = part.cols();
  if (part.encoding == Encoding::plain) {
    if (part.values.dtype == DType::f32) return widen<float>(part.values, row, out);
    if (part.values.dtype == DType::bf16) return widen<BFloat16>(part.values, row, out);
    return widen<Float16>(part.values, row, out);
  }
  const auto* bytes = part.values.row<std::uint8_t>(row);
  if (!part.scales) {
    const BlockShape shape = block_shape(part.encoding);
    QuantBlock block;
    for (std::int64_t k = 0; k < cols; k += shape.elements, bytes += shape.bytes) {
      take_apart(part.encoding, bytes, block);
      dequantize_block(part.encoding, block, shape.elements, out + k);
    }
    return;
  }
  const std::int64_t groups = part.scales.size(1), group = cols / groups;
  const std::uint8_t* values = values_of(part.encoding);
  for (std::int64_t g = 0; g < groups; ++g, bytes += group, out += group) {
    const float scale = part.scales.row<float>(row)[g * part.scales.stride[1]];
    if (part.encoding == Encoding::fp8) {
      for (std::int64_t k = 0; k < group; ++k) out[k] = scale * to_f32(Float8E4M3{bytes[k]});
      continue;
    }
    const int zero =
        part.zeros ? part.zeros.row<std::uint8_t>(row)[g * part.zeros.stride[1]] : zero_of(part.encoding);
    for (std::int64_t k = 0; k < group; ++k)
      out[k] = scale * static_cast<float>((values != nullptr ? values[bytes[k]] : bytes[k]) - zero);
  }
}

}  // namespace octavo
