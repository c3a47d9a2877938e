#include "determinism.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr int kRequests = 140;  // times 20 comparisons

// Tile instructions in software take a hundred times as long as in a processor.
int requests_at(const Level& level) {
  const bool tiles = level.isa == CpuIsa::amx_modelled && level.dtype == ModelDType::bfloat16;
  return tiles ? kRequests / 2 : kRequests;
}

class Determinism : public testing::TestWithParam<Level> {};

TEST_P(Determinism, AnAnswerDependsOnItsRequestAlone) {
  const Report report = check_determinism(GetParam(), requests_at(GetParam()), 1);
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
