#include "transfer/tiers/compressed_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/scratch_directory.h"
#include "tensor/dtype.h"
#include "transfer/testing/redis.h"
#include "transfer/tiers/block_files.h"
#include "transfer/tiers/store_blocks.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr int kHeadDim = 24, kTokens = 4, kVectors = 3, kLayers = 2;
constexpr int kAll = kLayers * kVectors * kTokens;
constexpr Hash128 kKey{1, 2};

BlockFormat format_of(DType dtype) {
  const int bytes = kHeadDim * static_cast<int>(size_of(dtype));
  return {.fingerprint = "model",
          .dtype = std::string(name(dtype)),
          .block_size = kTokens,
          .bytes = kAll * bytes,
          .planes = std::vector<BlockFormat::Planes>(kLayers, {kVectors, bytes})};
}

std::vector<std::byte> block_of(DType dtype, const std::vector<float>& numbers) {
  std::vector<std::byte> block(numbers.size() * size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const BFloat16 bf16 = to_bf16(numbers[i]);
    const Float16 f16 = to_f16(numbers[i]);
    const void* const number = dtype == DType::bf16  ? static_cast<const void*>(&bf16)
                               : dtype == DType::f16 ? static_cast<const void*>(&f16)
                                                     : &numbers[i];
    std::memcpy(&block[i * size_of(dtype)], number, size_of(dtype));
  }
  return block;
}

std::vector<float> numbers_of(DType dtype, std::span<const std::byte> block) {
  std::vector<float> numbers(block.size() / size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &block[i * size_of(dtype)], sizeof bits);
    if (dtype == DType::f32) std::memcpy(&numbers[i], &block[i * size_of(dtype)], sizeof(float));
    if (dtype == DType::bf16) numbers[i] = to_f32(BFloat16{bits});
    if (dtype == DType::f16) numbers[i] = to_f32(Float16{bits});
  }
  return numbers;
}

struct Compressed {
  ScratchDirectory folder;
  DType dtype;
  BlockCompression by;
  std::unique_ptr<BlockStore> blocks;

  Compressed(DType type, BlockCompression compression) : dtype(type), by(compression) { open(); }
  void open() {
    blocks.reset();
    blocks = std::make_unique<CompressedBlocks>(
        format_of(dtype), by,
        BlockFiles::open(folder.path(), compressed(format_of(dtype), by).value(), 1 << 20).value());
  }
  Result<> put(Hash128 key, const std::vector<float>& numbers) const {
    return blocks->write(key, [&](std::span<std::byte> to) {
      const std::vector<std::byte> block = block_of(dtype, numbers);
      ASSERT_EQ(to.size(), block.size());
      std::ranges::copy(block, to.begin());
    });
  }
  Result<std::vector<float>> get(Hash128 key) const {
    std::vector<float> numbers;
    TRY_VOID(
        blocks->read(key, [&](std::span<const std::byte> block) { numbers = numbers_of(dtype, block); }));
    return numbers;
  }
  fs::path file() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      if (entry.path().extension() == ".kv") return entry.path();
    return {};
  }
};

class CompressedBlocksOf : public testing::TestWithParam<std::tuple<DType, BlockCompression>> {
 protected:
  const DType dtype_ = std::get<0>(GetParam());
  const BlockCompression by_ = std::get<1>(GetParam());

  // Checks the error limits of compressed_blocks.h.
  void expect_near(std::span<const float> before, std::span<const float> after) const {
    double largest = 0;
    for (const float x : before) largest = std::max(largest, std::abs(static_cast<double>(x)));
    const double zero_below = (by_ == BlockCompression::int8 ? 127 : 448) * 0x1p-126;
    const double times = (dtype_ == DType::f32 ? 1 : 2) * (1 + 1e-5);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double own = std::abs(static_cast<double>(before[i]));
      const double bound = largest < zero_below            ? own
                           : by_ == BlockCompression::int8 ? times * largest / 254
                                                           : times * std::max(own / 16, largest / 458'752);
      EXPECT_LE(std::abs(static_cast<double>(after[i]) - before[i]), bound) << before[i] << " of " << largest;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, CompressedBlocksOf,
    testing::Combine(testing::Values(DType::f32, DType::f16, DType::bf16),
                     testing::Values(BlockCompression::int8, BlockCompression::fp8)),
    [](const auto& each) {
      return std::string(name(std::get<0>(each.param))) + "_" +
             std::string(kBlockCompressionNames[static_cast<std::size_t>(std::get<1>(each.param))]);
    });

// Returns vectors of small, large, mixed and constant magnitudes.
std::vector<float> some_numbers(DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const float most = dtype == DType::f16 ? 65'504 : std::numeric_limits<float>::max();
  std::vector<float> numbers;
  for (int v = 0; v < kAll; ++v) {
    const float size = std::ldexp(1.0f, static_cast<int>(random() % 250) - 145);
    for (int i = 0; i < kHeadDim; ++i) {
      float x = normal(random) * size;
      if (v % 6 == 1) x = i == 3 ? -size : 0;
      if (v % 6 == 2) x *= std::ldexp(1.0f, -static_cast<int>(random() % 30));
      numbers.push_back(std::clamp(x, -most, most));
    }
  }
  return numbers_of(dtype, block_of(dtype, numbers));
}

TEST_P(CompressedBlocksOf, NumbersComeBackWithinTheStatedError) {
  const Compressed c(dtype_, by_);
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Hash128 key{seed, 7};
    const std::vector<float> before = some_numbers(dtype_, seed);
    ASSERT_TRUE(c.put(key, before));
    const std::vector<float> after = c.get(key).value();
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t at = 0; at < before.size(); at += kHeadDim)
      expect_near(std::span(before).subspan(at, kHeadDim), std::span(after).subspan(at, kHeadDim));
  }
}

TEST_P(CompressedBlocksOf, ExtremesStayInTheirVector) {
  const Compressed c(dtype_, by_);
  const auto part = [](std::span<const float> all, int vector) {
    return all.subspan(static_cast<std::size_t>(vector * kHeadDim), kHeadDim);
  };
  std::vector<float> before(kAll * kHeadDim);
  const auto fill = [&](int vector, float x) {
    for (int i = 0; i < kHeadDim; i += 2)
      before[static_cast<std::size_t>(vector * kHeadDim + i)] = i % 4 == 0 ? x : -x;
  };
  const float most = dtype_ == DType::f16    ? 65'504
                     : dtype_ == DType::bf16 ? to_f32(BFloat16{0x7f7f})
                                             : std::numeric_limits<float>::max();
  fill(1, most);
  fill(2, dtype_ == DType::f16 ? 0x1p-24f : 1e-44f);  // subnormal
  fill(3, std::numeric_limits<float>::infinity());
  before[4 * kHeadDim + 5] = std::numeric_limits<float>::quiet_NaN();
  fill(5, 1);
  before = numbers_of(dtype_, block_of(dtype_, before));
  ASSERT_TRUE(c.put(kKey, before));
  const std::vector<float> after = c.get(kKey).value();
  for (const int vector : {0, 1, 2, 5, 6}) expect_near(part(before, vector), part(after, vector));
  EXPECT_TRUE(std::ranges::equal(part(before, 0), part(after, 0))) << "zeros";
  EXPECT_TRUE(std::ranges::equal(part(before, 1), part(after, 1))) << "the largest is exact";
  EXPECT_TRUE(std::ranges::equal(part(before, 5), part(after, 5)));
  for (const int vector : {3, 4})
    for (const float x : part(after, vector)) EXPECT_TRUE(std::isnan(x));
}

TEST_P(CompressedBlocksOf, TheSameBlockIsTheSameFileAndComesBackAfterARestart) {
  Compressed c(dtype_, by_), other(dtype_, by_);
  const std::vector<float> before = some_numbers(dtype_, 5);
  ASSERT_TRUE(c.put(kKey, before) && other.put(kKey, before));
  const auto bytes = [](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(bytes(c.file()), bytes(other.file()));
  const BlockFormat small = compressed(format_of(dtype_), by_).value();
  EXPECT_EQ(small.bytes, kAll * (kHeadDim + 4));
  EXPECT_EQ(fs::file_size(c.file()), small.stride());
  const std::vector<float> after = c.get(kKey).value();
  c.open();
  EXPECT_EQ(c.get(kKey).value(), after);
}

TEST_P(CompressedBlocksOf, WhatIsTornOrSpoiltIsRefused) {
  Compressed c(dtype_, by_);
  const auto spoil = [&](auto&& change) {
    EXPECT_TRUE(c.put(kKey, some_numbers(dtype_, 1)));
    change(c.file());
    c.open();
    const auto got = c.get(kKey);
    EXPECT_FALSE(got);
    EXPECT_FALSE(c.blocks->contains(kKey));
    return got ? ErrorCode{} : got.error().code;
  };
  EXPECT_EQ(spoil([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }),
            ErrorCode::corrupt);
  EXPECT_EQ(spoil([](const fs::path& file) {
              std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
                  .seekp(100)
                  .put('\x55')
                  .put('\x56');
            }),
            ErrorCode::corrupt);
}

TEST_P(CompressedBlocksOf, PlainAndCompressedOnesAreNotTakenForEachOther) {
  const Compressed c(dtype_, by_);
  ASSERT_TRUE(c.put(kKey, some_numbers(dtype_, 1)));
  const BlockFormat plain = format_of(dtype_), small = compressed(plain, by_).value();
  const fs::path file = c.file();
  const auto files = BlockFiles::open(c.folder.path(), plain, 1 << 20).value();
  EXPECT_EQ(files->count(), 0) << "a folder of their own";
  EXPECT_EQ(files->read(kKey, [](std::span<const std::byte>) { FAIL(); }).error().code, ErrorCode::not_found);
  ASSERT_TRUE(files->write(Hash128{3, 4}, [](std::span<std::byte>) {}));
  EXPECT_FALSE(c.blocks->contains(Hash128{3, 4}));

  // A plain block of the same size is rejected, because its header has the digest of another format.
  BlockFormat same = plain;
  same.bytes = small.bytes;
  std::vector<std::byte> packed(small.stride());
  seal(same, kKey, packed);
  EXPECT_EQ(verify(small, kKey, packed).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(fs::file_size(file), packed.size());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(packed.data()), std::ssize(packed));
  EXPECT_EQ(c.get(kKey).error().code, ErrorCode::invalid_argument);
}

TEST(CompressedBlocks, AStoreIsSharedByThoseThatCompressAlike) {
  TestRedis redis;
  const BlockFormat plain = format_of(DType::bf16);
  const auto open = [&](BlockCompression by) {
    return std::make_unique<CompressedBlocks>(
        plain, by, StoreBlocks::open(redis.url(), {}, compressed(plain, by).value()).value());
  };
  const auto one = open(BlockCompression::int8), two = open(BlockCompression::int8),
             fp8 = open(BlockCompression::fp8);
  const std::vector<float> before(kAll * kHeadDim, 2.5f);
  ASSERT_TRUE(one->write(
      kKey, [&](std::span<std::byte> to) { std::ranges::copy(block_of(DType::bf16, before), to.begin()); }));
  for (const auto* each : {&two, &fp8}) (*each)->look_up(std::span(&kKey, 1));
  EXPECT_TRUE(two->must_look_up() && two->reachable() && two->contains(kKey));
  EXPECT_FALSE(fp8->contains(kKey));
  std::vector<float> after;
  ASSERT_TRUE(
      two->read(kKey, [&](std::span<const std::byte> block) { after = numbers_of(DType::bf16, block); }));
  EXPECT_EQ(after, before);
  two->remove(std::span(&kKey, 1));
  EXPECT_EQ(redis.count(), 0u);
}

TEST(CompressedBlocks, WhatIsNoVectorsOfWideNumbersIsRefusedByName) {
  const auto refusal = [](const BlockFormat& format) {
    const auto small = compressed(format, BlockCompression::int8);
    EXPECT_FALSE(small);
    return small ? Error{} : small.error();
  };
  for (const DType dtype : {DType::i8, DType::f8_e4m3, DType::i32}) {
    const Error error = refusal(format_of(dtype));
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    EXPECT_NE(error.message.find(std::string(name(dtype))), std::string::npos) << error.message;
  }
  BlockFormat windows = format_of(DType::bf16);
  windows.planes.clear();
  EXPECT_EQ(refusal(windows).code, ErrorCode::unsupported);
  EXPECT_NE(refusal(windows).message.find("sliding windows"), std::string::npos);
  EXPECT_EQ(compressed(windows, BlockCompression::none).value(), windows);
}

}  // namespace
}  // namespace octavo
