// Tests properties of GPU instructions that kernels rely on but no document guarantees.
#include "kernels/cuda/instructions_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cuda/runtime.h"
#include "kernels/testing/tensors.h"

namespace octavo::cuda {
namespace {

// Both must give the same bits: prompts use warpgroup instructions (wgmma.h) and decoding uses warp
// instructions (mma.h).
TEST(CudaInstructions, ProductsOfAWarpgroupHaveTheBitsOfAWarps) {
  const auto device = runtime::open(0);
  if (!device || !(device->wgmma || device->name == "emulated")) GTEST_SKIP() << "no device with wgmma";
  constexpr std::size_t kOutputs = 2 * kProductRows * kProductSide;
  const StreamHandle stream = runtime::make_stream();
  TestRandom random(71);
  for (int round = 0; round < 20; ++round) {
    const DType type = round % 2 == 0 ? DType::bf16 : DType::f16;
    TestTensor a = random.tensor(type, {kProductRows, kProductSide}), b = random.tensor(type, {kProductSide, kProductSide});
    for (TestTensor* x : {&a, &b})  // numbers of very different sizes, so that rounding errors are large
      for (std::int64_t i = 0; i < x->elements() && round >= 4; ++i)
        x->set(i, std::ldexp((*x)[i], random.integer(-round / 4, round / 4)));
    void* const a_device = runtime::allocate(static_cast<std::size_t>(a.view().bytes())).value();
    void* const b_device = runtime::allocate(static_cast<std::size_t>(b.view().bytes())).value();
    void* const out = runtime::allocate(2 * kOutputs * sizeof(float)).value();
    runtime::copy_to_device(stream, a_device, a.view().data, static_cast<std::size_t>(a.view().bytes()));
    runtime::copy_to_device(stream, b_device, b.view().data, static_cast<std::size_t>(b.view().bytes()));
    auto* const by_warpgroup = static_cast<float*>(out);
    multiply_both_ways(stream, type == DType::bf16 ? Format::bf16 : Format::f16, a_device, b_device, by_warpgroup,
                       by_warpgroup + kOutputs);
    std::vector<float> results(2 * kOutputs);
    runtime::copy_to_host(stream, results.data(), out, results.size() * sizeof(float));
    runtime::synchronize(stream);
    for (void* memory : {a_device, b_device, out}) runtime::release(memory);

    std::size_t different = 0;
    for (std::size_t i = 0; i < kOutputs; ++i) {
      different += results[i] == results[kOutputs + i] ? 0 : 1;
      const std::int64_t swapped = i < kOutputs / 2 ? 0 : 1;
      const auto row = static_cast<std::int64_t>(i % (kOutputs / 2) / kProductSide), column = static_cast<std::int64_t>(i % kProductSide);
      double exact = 0, size = 0;
      for (std::int64_t k = 0; k < kProductSide; ++k) {
        const double product = double{a[row * kProductSide + k]} *
                               b[swapped ? k * kProductSide + column : column * kProductSide + k];
        exact += product;
        size += std::abs(product);
      }
      ASSERT_LE(std::abs(results[i] - exact), 1e-5 * size) << "round " << round << " result " << i;
    }
    EXPECT_EQ(different, 0u) << "of " << kOutputs << " results, round " << round << " " << name(type);
  }
  runtime::destroy_stream(stream);
}

TEST(CudaInstructions, Fp8ProductsHaveTheColumnsThatTheDefinitionSays) {
  if (!runtime::open(0)) GTEST_SKIP() << "no device";
  constexpr std::size_t kRows = 16, kOutputs = 8, kColumns = 32, kResults = kRows * kOutputs;
  TestRandom random(72);
  std::vector<Float8E4M3> numbers;  // a, then b
  for (std::size_t i = 0; i < (kRows + kOutputs) * kColumns; ++i)
    numbers.push_back(to_f8_e4m3(random.real(-1, 1)));
  const StreamHandle stream = runtime::make_stream();
  auto* const memory =
      static_cast<std::byte*>(runtime::allocate(numbers.size() + 2 * kResults * sizeof(float)).value());
  auto* const out = reinterpret_cast<float*>(memory + numbers.size());
  runtime::copy_to_device(stream, memory, numbers.data(), numbers.size());
  multiply_e4m3_both_ways(stream, memory, memory + kRows * kColumns, out, out + kResults);
  std::vector<float> both(2 * kResults);
  runtime::copy_to_host(stream, both.data(), out, both.size() * sizeof(float));
  runtime::synchronize(stream);
  runtime::release(memory);
  runtime::destroy_stream(stream);
  for (std::size_t i = 0; i < kResults; ++i) {
    double exact = 0;
    for (std::size_t k = 0; k < kColumns; ++k)
      exact += double{to_f32(numbers[i / kOutputs * kColumns + k])} *
               to_f32(numbers[(kRows + i % kOutputs) * kColumns + k]);
    EXPECT_NEAR(both[i], exact, 1e-2) << i;
    EXPECT_NEAR(both[kResults + i], exact, 1e-4) << i;
  }
}

TEST(CudaInstructions, Fp8IsConvertedExactly) {
  if (!runtime::open(0)) GTEST_SKIP() << "no device";
  const StreamHandle stream = runtime::make_stream();
  for (const DType type : {DType::bf16, DType::f16}) {
    void* const device = runtime::allocate(512).value();
    convert_codes(stream, type == DType::bf16 ? Format::bf16 : Format::f16, device);
    TestTensor numbers(type, {256});
    runtime::copy_to_host(stream, numbers.data(), device, 512);
    runtime::synchronize(stream);
    runtime::release(device);
    for (int code = 0; code < 256; ++code) {
      const float wanted = to_f32(Float8E4M3{static_cast<std::uint8_t>(code)});
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(numbers[code])) << code;
      } else {
        EXPECT_EQ(numbers[code], wanted) << code << " " << name(type);
      }
    }
  }
  runtime::destroy_stream(stream);
}

}  // namespace
}  // namespace octavo::cuda
