// Random quantised matrices, for tests of operators.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backends.h"
#include "kernels/testing/tensors.h"
#include "tensor/dequantize.h"

namespace octavo {

// A test of the CPU backend against the reference, for each instruction set.
class CpuBesideReference : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    auto made = make_cpu_backend({.threads = 3, .isa = GetParam()});
    if (!made) GTEST_SKIP() << made.error().message;
    cpu.emplace(*std::move(made));
  }

  std::optional<Backend> cpu;
  Backend reference = make_reference_backend();
};

// A part of a matrix that owns its memory.
struct TestPart {
  Encoding encoding;
  std::int64_t rows, cols;
  std::int64_t row_bytes = 0;
  std::int64_t groups = 0;
  std::vector<std::uint8_t> bytes{};
  std::vector<float> scales{};
  std::vector<std::uint8_t> zeros{};

  MatrixPart part() const {
    const auto view = [&](const auto& v, DType type, std::int64_t width) {
      return v.empty() ? View{}
                       : View::of(const_cast<void*>(static_cast<const void*>(v.data())), type, {rows, width});
    };
    return {.encoding = encoding,
            .values = view(bytes, DType::u8, row_bytes),
            .scales = view(scales, DType::f32, groups),
            .zeros = view(zeros, DType::u8, groups)};
  }
};

inline constexpr auto kQuantisedEncodings = [] {  // all GGUF encodings first
  std::array<Encoding, static_cast<std::size_t>(kLastBlocks) - static_cast<std::size_t>(kFirstBlocks) + 4>
      all{};
  for (std::size_t i = 0; i + 3 < all.size(); ++i)
    all[i] = static_cast<Encoding>(static_cast<std::size_t>(kFirstBlocks) + i);
  std::ranges::copy(std::array{Encoding::int4, Encoding::int8, Encoding::mxfp4}, all.end() - 3);
  return all;
}();
inline constexpr auto kBlockEncodings =
    std::span(kQuantisedEncodings).first<kQuantisedEncodings.size() - 3>();

inline Encoding random_blocks_encoding(TestRandom& random) {
  return kBlockEncodings[static_cast<std::size_t>(
      random.integer(0, static_cast<int>(kBlockEncodings.size()) - 1))];
}

// Returns random bytes, except that scales are chosen so that the numbers are near 1. `cols` must be a
// multiple of the encoding's block size.
inline TestPart random_blocks(TestRandom& random, Encoding encoding, std::int64_t rows, std::int64_t cols) {
  const BlockShape block = block_shape(encoding);
  TestPart p{
      .encoding = encoding, .rows = rows, .cols = cols, .row_bytes = cols / block.elements * block.bytes};
  p.bytes.resize(static_cast<std::size_t>(rows * p.row_bytes));
  for (std::uint8_t& byte : p.bytes) byte = static_cast<std::uint8_t>(random.integer(0, 255));
  const BlockTraits& traits = block_traits(encoding);
  const float largest = block.elements == 256 ? 1e-3f : 1e-2f;
  const auto put = [&](std::uint8_t* to) {
    const Float16 number = to_f16(random.real(-largest, largest));
    std::memcpy(to, &number, sizeof number);
  };
  for (std::size_t first = 0; first < p.bytes.size(); first += static_cast<std::size_t>(block.bytes)) {
    std::uint8_t* bytes = p.bytes.data() + first;
    if (traits.scale_at >= 0)
      put(bytes + traits.scale_at);
    else
      bytes[55] &= 0x3f;  // IQ1_M: the highest bits of the exponent
    if (traits.has_min()) put(bytes + traits.min_at);
  }
  return p;
}

inline TestPart random_codes(TestRandom& random, Encoding encoding, std::int64_t rows, std::int64_t cols,
                             std::int64_t groups, bool with_zeros) {
  TestPart p{.encoding = encoding, .rows = rows, .cols = cols, .row_bytes = cols, .groups = groups};
  const bool mxfp4 = encoding == Encoding::mxfp4;
  const int codes = mxfp4 || encoding == Encoding::int4 ? 16 : 256;
  for (std::int64_t i = 0; i < rows * cols; ++i)
    p.bytes.push_back(static_cast<std::uint8_t>(random.integer(0, codes - 1)));
  if (encoding == Encoding::fp8)
    for (std::uint8_t& byte : p.bytes)
      if ((byte & 0x7f) == 0x7f) byte = 0;
  for (std::int64_t i = 0; i < rows * groups; ++i)
    p.scales.push_back(mxfp4 ? std::ldexp(1.0f, static_cast<int>(random.integer(-8, -4)))
                             : random.real(-0.02f, 0.02f));
  // Zero points are at most one above the largest code, as in GPTQ.
  for (std::int64_t i = 0; i < rows * groups && with_zeros; ++i)
    p.zeros.push_back(static_cast<std::uint8_t>(random.integer(0, std::min(codes, 255))));
  return p;
}

// Returns a random part with any encoding. It rounds cols up as the encoding requires, so pass the same cols
// for all parts of a matrix.
inline TestPart random_part(TestRandom& random, Encoding encoding, std::int64_t rows, std::int64_t cols) {
  const int elements = block_shape(encoding).elements;
  if (elements > 1)
    return random_blocks(random, encoding, rows, std::max<std::int64_t>(1, cols / elements) * elements);
  if (encoding == Encoding::mxfp4) {
    const std::int64_t pairs = std::max<std::int64_t>(1, cols / 32);
    return random_codes(random, encoding, rows, pairs * 32, random.coin() ? pairs : 2 * pairs, false);
  }
  if (random.coin()) return random_codes(random, encoding, rows, cols, 1, random.coin());
  const std::int64_t group = random.pick({32, 64, 96, 128, 1088});
  const std::int64_t groups = std::max<std::int64_t>(1, cols / group);
  return random_codes(random, encoding, rows, groups * group, groups, random.coin());
}

}  // namespace octavo
