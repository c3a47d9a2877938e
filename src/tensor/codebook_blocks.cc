// The layouts are those of llama.cpp (ggml-quants.c). A block has 256 numbers in 8 parts of 32.
#include "tensor/codebook_blocks.h"

#include <bit>

#include "tensor/codebooks.h"

namespace octavo {
namespace {

constexpr std::size_t kParts = 8;

std::uint16_t u16_at(const std::uint8_t* bytes) { return f16_at(bytes).bits; }

std::uint32_t u32_at(const std::uint8_t* bytes) {
  return u16_at(bytes) | static_cast<std::uint32_t>(u16_at(bytes + 2)) << 16;
}

// Returns 8 signs, one per bit; a set bit means negative. The file stores 7 of the bits. The eighth bit
// makes the number of negative signs even.
std::uint32_t eight_signs(std::uint32_t seven) {
  seven &= 127;
  return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1) << 7;
}

// Writes the codes of a codebook entry. A code consists of kBits bits of magnitude and then the sign bit.
template <int kBits>
void put_entry(std::uint32_t entry, std::uint32_t signs, int count, std::uint8_t* codes) {
  for (int i = 0; i < count; ++i)
    codes[i] =
        static_cast<std::uint8_t>((entry >> kBits * i & ((1 << kBits) - 1)) | (signs >> i & 1) << kBits);
}

// Returns 2 * bits + 1, because the formats store only odd scales.
std::int8_t odd(std::uint32_t bits) { return static_cast<std::int8_t>(2 * bits + 1); }

void set_scales(QuantBlock& block, std::size_t part, std::int8_t first, std::int8_t second) {
  block.scales[2 * part] = first;
  block.scales[2 * part + 1] = second;
}

void iq4_xs(const std::uint8_t* bytes, QuantBlock& block) {
  const std::uint32_t high = u16_at(bytes + 2);
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint32_t low = bytes[4 + part / 2] >> part % 2 * 4 & 15;
    block.scales[part] = static_cast<std::int8_t>((low | (high >> 2 * part & 3) << 4) - 32);
    for (std::size_t i = 0; i < 16; ++i) {
      const std::uint8_t two = bytes[8 + 16 * part + i];
      block.codes[32 * part + i] = two & 15;
      block.codes[32 * part + 16 + i] = two >> 4;
    }
  }
}

void iq3_xxs(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint8_t* entries = bytes + 2 + 8 * part;
    // 32-bit word of the part, from the lowest bit: four groups of 7 sign bits, then 4 bits of scale
    const std::uint32_t rest = u32_at(bytes + 66 + 4 * part);
    block.scales[part] = odd(rest >> 28);
    for (std::size_t i = 0; i < 8; ++i)
      put_entry<3>(kIq3Xxs[entries[i]], eight_signs(rest >> 7 * (i / 2)) >> i % 2 * 4, 4,
                   &block.codes[32 * part + 4 * i]);
  }
}

void iq3_s(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint8_t* entries = bytes + 2 + 8 * part;
    const std::uint32_t high = bytes[66 + part];
    block.scales[part] = odd(bytes[106 + part / 2] >> part % 2 * 4 & 15);
    for (std::size_t i = 0; i < 8; ++i)
      put_entry<3>(kIq3S[entries[i] | (high >> i & 1) << 8], bytes[74 + 4 * part + i / 2] >> i % 2 * 4, 4,
                   &block.codes[32 * part + 4 * i]);
  }
}

void iq2_xxs(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint8_t* entries = bytes + 2 + 8 * part;
    // 32-bit word of the part, from the lowest bit: four groups of 7 sign bits, then 4 bits of scale
    const std::uint32_t rest = u32_at(entries + 4);
    set_scales(block, part, odd(rest >> 28), odd(rest >> 28));
    for (std::size_t i = 0; i < 4; ++i)
      put_entry<2>(kIq2Xxs[entries[i]], eight_signs(rest >> 7 * i), 8, &block.codes[32 * part + 8 * i]);
  }
}

void iq2_xs(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint32_t scales = bytes[66 + part];
    set_scales(block, part, odd(scales & 15), odd(scales >> 4));
    for (std::size_t i = 0; i < 4; ++i) {
      // 9 index bits, then 7 sign bits
      const std::uint32_t both = u16_at(bytes + 2 + 8 * part + 2 * i);
      put_entry<2>(kIq2Xs[both & 511], eight_signs(both >> 9), 8, &block.codes[32 * part + 8 * i]);
    }
  }
}

void iq2_s(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint32_t high = bytes[66 + part], scales = bytes[74 + part];
    set_scales(block, part, odd(scales & 15), odd(scales >> 4));
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t at = 2 + 4 * part + i;
      put_entry<2>(kIq2S[bytes[at] | (high >> 2 * i & 3) << 8], bytes[at + 32], 8,
                   &block.codes[32 * part + 8 * i]);
    }
  }
}

void iq1_s(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    // four groups of 3 index bits, then 3 bits of scale, then the shift's sign
    const std::uint32_t high = u16_at(bytes + 34 + 2 * part);
    set_scales(block, part, odd(high >> 12 & 7), odd(high >> 12 & 7));
    for (std::size_t i = 0; i < 4; ++i)
      put_entry<2>(kIq1[bytes[2 + 4 * part + i] | (high >> 3 * i & 7) << 8], high >> 15 ? 255 : 0, 8,
                   &block.codes[32 * part + 8 * i]);
  }
}

void iq1_m(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::uint32_t scales =
        static_cast<std::uint32_t>(u16_at(bytes + 48 + part / 2 * 2)) >> part % 2 * 6;
    set_scales(block, part, odd(scales & 7), odd(scales >> 3 & 7));
    for (std::size_t i = 0; i < 4; ++i) {
      // 3 index bits, the shift's sign
      const std::uint32_t high = bytes[32 + 2 * part + i / 2] >> i % 2 * 4;
      put_entry<2>(kIq1[bytes[4 * part + i] | (high & 7) << 8], high & 8 ? 255 : 0, 8,
                   &block.codes[32 * part + 8 * i]);
    }
  }
}

// A byte stores five ternary numbers: byte * 3^i, modulo 256, has number i as its highest ternary digit.
void tq1_0(const std::uint8_t* bytes, QuantBlock& block) {
  constexpr struct {
    // a run of bytes: offset of the first byte, number of bytes, numbers in each byte
    std::size_t first, count, numbers;
  } kRuns[] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
  std::uint8_t* code = block.codes.data();
  for (const auto& run : kRuns) {
    std::uint32_t power = 1;
    for (std::size_t n = 0; n < run.numbers; ++n, power *= 3)
      for (std::size_t i = 0; i < run.count; ++i)
        *code++ = static_cast<std::uint8_t>((bytes[run.first + i] * power & 255) * 3 >> 8);
  }
}

void tq2_0(const std::uint8_t* bytes, QuantBlock& block) {
  for (std::size_t i = 0; i < block.codes.size(); ++i)
    block.codes[i] = bytes[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}

}  // namespace

Float16 scale_of(const BlockTraits& traits, const std::uint8_t* block) {
  if (traits.scale_at >= 0) return f16_at(block + traits.scale_at);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>(block[49 + 2 * i] >> 4) << 4 * i;
  return {static_cast<std::uint16_t>(bits)};
}

void take_codebook_apart(Encoding encoding, const std::uint8_t* bytes, QuantBlock& block) {
  block.scale = scale_of(block_traits(encoding), bytes);
  switch (encoding) {
    case Encoding::iq4_xs:
      return iq4_xs(bytes, block);
    case Encoding::iq3_s:
      return iq3_s(bytes, block);
    case Encoding::iq3_xxs:
      return iq3_xxs(bytes, block);
    case Encoding::iq2_s:
      return iq2_s(bytes, block);
    case Encoding::iq2_xs:
      return iq2_xs(bytes, block);
    case Encoding::iq2_xxs:
      return iq2_xxs(bytes, block);
    case Encoding::iq1_s:
      return iq1_s(bytes, block);
    case Encoding::iq1_m:
      return iq1_m(bytes, block);
    case Encoding::tq1_0:
      return tq1_0(bytes, block);
    default:
      return tq2_0(bytes, block);
  }
}

}  // namespace octavo
