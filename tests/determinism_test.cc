#include "determinism.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

// Each is compared 15 times. Quantised weights change no more than the products, which have tests of their
// own.
int requests(const Level& level) { return level.quantization == Encoding::plain ? 140 : 60; }

class Determinism : public testing::TestWithParam<Level> {};

TEST_P(Determinism, AnAnswerDependsOnItsRequestAlone) {
  const Report report = check_determinism(GetParam(), requests(GetParam()), 1);
  fmt::print("{}: {} pairs, {} differences, {} preemptions\n", name(GetParam()), report.pairs,
             report.differences, report.preemptions);
  EXPECT_EQ(report.differences, 0);
  EXPECT_GT(report.preemptions, 0);
  for (const std::string& example : report.examples) ADD_FAILURE() << example;
}

INSTANTIATE_TEST_SUITE_P(Level, Determinism, testing::ValuesIn(levels()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace octavo
