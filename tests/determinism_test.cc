#include "determinism.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing/length.h"

namespace octavo {
namespace {

constexpr int kRequests = 140;  // in the long test; each request has 20 comparisons
// The variations are divided into this number of parts; the short test runs one part for each level.
constexpr int kParts = 5;

// Emulated tile instructions take a hundred times as long, so levels with them get fewer requests, which
// do not fill the pool.
int requests_at(const Level& level) {
  if (!long_tests()) return kRequests / 3;
  const bool tiles = level.isa == CpuIsa::amx_modelled && level.dtype == ModelDType::bfloat16;
  return tiles ? kRequests / 2 : kRequests;
}

struct Case {
  Level level;
  VariationPart part;  // for the short test
};

// Neighbouring levels have different number formats, and 5 is odd. So the short test runs each variation
// with each format.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Level& level : levels())
    all.push_back({level, {.part = static_cast<int>(all.size()) % kParts, .of = kParts}});
  return all;
}

class Determinism : public testing::TestWithParam<Case> {};

TEST_P(Determinism, AnAnswerDependsOnItsRequestAlone) {
  const auto& [level, part] = GetParam();
  const Report report =
      check_determinism(level, requests_at(level), 1, kDemoModel, long_tests() ? VariationPart{} : part);
  fmt::print("{}: {} pairs, {} differences, {} preemptions\n", name(level), report.pairs, report.differences,
             report.preemptions);
  EXPECT_EQ(report.differences, 0);
  for (const std::string& variation : report.roomy) ADD_FAILURE() << variation << ": nothing was preempted";
  for (const std::string& example : report.examples) ADD_FAILURE() << example;
}

INSTANTIATE_TEST_SUITE_P(Level, Determinism, testing::ValuesIn(cases()),
                         [](const auto& test) { return name(test.param.level); });

}  // namespace
}  // namespace octavo
