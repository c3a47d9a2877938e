#include "base/member_path.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

struct Blocks {
  int used = 3;
};
struct Stats {
  Blocks blocks = {};
  int steps = 7;
};

Blocks& blocks_of(Stats& stats) { return stats.blocks; }

TEST(MemberPath, LeadsToAMemberOfAMember) {
  constexpr MemberPath<Stats, int> kUsed = member_path<&Stats::blocks, &Blocks::used>;
  constexpr MemberPath<Stats, int> kSteps = member_path<&Stats::steps>;
  Stats stats;
  kUsed(stats) = 5;
  const Stats& constant = stats;
  EXPECT_EQ(kUsed(constant), 5);
  EXPECT_EQ(&kSteps(constant), &stats.steps);
}

TEST(MemberPath, FollowsFunctionsAndTheEmptyPath) {
  Stats stats;
  follow<blocks_of, &Blocks::used>(stats) = 9;
  EXPECT_EQ(stats.blocks.used, 9);
  EXPECT_EQ(&follow<>(stats), &stats);
}

}  // namespace
}  // namespace octavo
