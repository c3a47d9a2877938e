#include "schedule/testing/simulation.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// Runs two thousand small simulations with a million operations in total. schedule_soak runs longer
// simulations.
class RandomWorlds : public ::testing::TestWithParam<int> {};

TEST_P(RandomWorlds, KeepEveryPromise) {
  int finished = 0;
  for (int world = 0; world < 250; ++world) {
    const Choose choose = random_choices(static_cast<std::uint64_t>(GetParam() * 1000 + world));
    Simulation simulation(random_options(choose), choose);
    for (int i = 0; i < 500; ++i) simulation.operate();
    simulation.drain();
    finished += simulation.finished();
  }
  EXPECT_GT(finished, 10'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWorlds, ::testing::Range(0, 8));

}  // namespace
}  // namespace octavo
