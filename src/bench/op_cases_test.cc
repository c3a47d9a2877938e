// Tests the cases of `octavo bench ops`: each case runs the operator that it names, and every operator has
// a case.
#include "bench/op_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bench/timed_backend.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

constexpr OpShapes kSmall{"small", 256, 4, 2, 64, 512, 1000};

class OpCases : public testing::Test {
 protected:
  void visit_all(const OpVisitor& visitor) {
    for (const auto part : kOpCaseParts) {
      const Result<> done = part(backend_, kSmall, visitor);
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
  }

  OpTimes times_;
  Backend backend_ = timed_backend(make_cpu_backend({.threads = 2, .isa = {}}).value(), times_);
};

TEST_F(OpCases, RunEveryOperator) {
  std::set<std::string> seen;
  visit_all({.wanted = [&](const OpCase& c) { return !seen.contains(c.operation); },
             .measure =
                 [&](const OpCase& c) {
                   seen.insert(c.operation);
                   std::int64_t before = 0, after = 0;
                   for (const auto& calls : times_.calls) before += calls;
                   c.run();
                   for (const auto& calls : times_.calls) after += calls;
                   EXPECT_EQ(after - before, c.calls) << c.operation;
                   EXPECT_GT(c.bytes + c.operations, 0) << c.operation;
                 }});
  for (std::size_t i = 0; i < kOpNames.size(); ++i) EXPECT_GT(times_.calls[i], 0) << kOpNames[i];
}

TEST_F(OpCases, AreNamedApart) {
  std::set<std::string> names;
  visit_all({.wanted =
                 [&](const OpCase& c) {
                   const std::string name = fmt::format("{} {} {}", c.operation, c.shape, c.format);
                   EXPECT_TRUE(names.insert(name).second) << name;
                   return false;
                 },
             .measure = [](const OpCase& c) { FAIL() << c.operation << " was not wanted"; }});
  EXPECT_GT(names.size(), 100u);
}

// Tests with the CUDA backend. Builds without CUDA use an emulator, whose memory the host cannot access.
TEST(OpCasesOnADevice, RunWhatTheDeviceHas) {
  auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  EXPECT_GT(DeviceLimits::make(*cuda)->bandwidth(), 0);
  std::set<std::string> ran;
  const OpVisitor visitor{.wanted =
                              // Emulation is slow, so only cases with few rows and short contexts run.
                          [](const OpCase& c) {
                            return c.shape.find("512") == c.shape.npos &&
                                   c.shape.find("4096") == c.shape.npos &&
                                   c.shape.find("2112") == c.shape.npos && !c.shape.starts_with("64 ");
                          },
                          .measure =
                              [&](const OpCase& c) {
                                if (!ran.insert(c.operation + " " + c.format).second) return;
                                c.run();
                                cuda->stream->synchronize();
                              },
                          .cold_bytes = 0};
  for (const auto part : kOpCaseParts) EXPECT_TRUE(part(*cuda, {"tiny", 256, 8, 2, 32, 768, 300}, visitor));
  EXPECT_THAT(ran, testing::IsSupersetOf({"matmul tiny qkv bf16", "matmul tiny down f16", "matmul tiny down int8",
                                          "attention tiny decode bf16", "attention tiny decode i8",
                                          "rope and store tiny f8_e4m3", "sample greedy tiny f32"}));
}

}  // namespace
}  // namespace octavo
