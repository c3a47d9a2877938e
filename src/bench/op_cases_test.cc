// What `octavo bench ops` measures: that each case runs what it says, and that no operator is left out.
#include "bench/op_cases.h"

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
    for (const auto part : {product_cases, attention_cases, row_cases, sample_cases}) {
      const Result<> done = part(backend_, kSmall, visitor);
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
  }

  OpTimes times_;
  Backend backend_ = timed_backend(make_cpu_backend({.threads = 2, .isa = {}}).value(), times_);
};

// The first case of each name, format aside.
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

}  // namespace
}  // namespace octavo
