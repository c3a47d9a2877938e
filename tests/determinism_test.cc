#include "determinism.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

// Times 15 comparisons. Tile instructions in software take a hundred times as long as in a processor.
constexpr int kRequests = 140, kModelledRequests = 40;

class Determinism : public testing::TestWithParam<Level> {};

TEST_P(Determinism, AnAnswerDependsOnItsRequestAlone) {
  const Report report = check_determinism(
      GetParam(), GetParam().isa == CpuIsa::amx_modelled ? kModelledRequests : kRequests, 1);
  fmt::print("{}: {} pairs, {} differences, {} preemptions\n", name(GetParam()), report.pairs,
             report.differences, report.preemptions);
  EXPECT_EQ(report.differences, 0);
  for (const std::string& variation : report.roomy) ADD_FAILURE() << variation << ": nothing was preempted";
  for (const std::string& example : report.examples) ADD_FAILURE() << example;
}

INSTANTIATE_TEST_SUITE_P(Level, Determinism, testing::ValuesIn(levels()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace octavo
