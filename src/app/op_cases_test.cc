// The cases of `octavo bench ops` on small shapes, on the CUDA backend (its emulation in builds without CUDA,
// where the host cannot reach the device's memory) and on the CPU.
#include "app/op_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/backends.h"

namespace octavo {
namespace {

constexpr OpShapes kTiny{"tiny", 256, 8, 2, 32, 768, 300};

// The first words of what ran.
std::set<std::string> run_cases(Backend& backend) {
  std::set<std::string> ran;
  const OpVisitor visitor{.wanted =
                              [](const OpCase& c) {
                                // Emulation is slow: short contexts only, and few rows.
                                return c.shape.find("512") == c.shape.npos &&
                                       c.shape.find("4096") == c.shape.npos &&
                                       c.shape.find("2112") == c.shape.npos && c.shape.find("64 ") != 0;
                              },
                          .measure =
                              [&](const OpCase& c) {
                                if (!ran.insert(c.operation + " " + c.format).second) return;
                                c.run();
                                backend.stream->synchronize();
                              },
                          .cold_bytes = 0};
  for (const auto part : {product_cases, attention_cases, row_cases, sample_cases})
    EXPECT_TRUE(part(backend, kTiny, visitor));
  return ran;
}

TEST(OpCases, RunOnTheCpu) {
  Backend cpu = make_cpu_backend({.threads = 2, .isa = {}}).value();
  const auto ran = run_cases(cpu);
  EXPECT_THAT(
      ran, testing::IsSupersetOf({"matmul tiny qkv bf16", "matmul tiny down int8", "attention tiny decode i8",
                                  "rope and store tiny f8_e4m3", "sample greedy tiny f32"}));
}

TEST(OpCases, RunOnADevice) {
  auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  EXPECT_GT(DeviceLimits::make(*cuda)->bandwidth(), 0);
  const auto ran = run_cases(*cuda);
  EXPECT_THAT(ran, testing::IsSupersetOf({"matmul tiny qkv bf16", "matmul tiny down f16",
                                          "attention tiny decode bf16", "rope and store tiny f8_e4m3",
                                          "sample greedy tiny f32"}));
  EXPECT_FALSE(ran.contains("matmul tiny down int8")) << "refused, so left out";
  EXPECT_FALSE(ran.contains("attention tiny decode i8"));
}

}  // namespace
}  // namespace octavo
