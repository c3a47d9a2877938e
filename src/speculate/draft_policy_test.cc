#include "speculate/draft_policy.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

TEST(DraftPolicy, AsksForAsManyAsThereMayBe) {
  Acceptance any;
  EXPECT_EQ(DraftPolicy({.most = 4}).count(1, any), 4);
  EXPECT_EQ(DraftPolicy({.most = 4}).count(1000, any), 4);
}

TEST(DraftPolicy, AStepThatIsFullTakesNoDrafts) {
  const DraftPolicy policy({.most = 4, .free_tokens = 32});
  Acceptance any;
  EXPECT_EQ(policy.count(1, any), 4);
  EXPECT_EQ(policy.count(6, any), 4);
  EXPECT_EQ(policy.count(8, any), 3);
  EXPECT_EQ(policy.count(16, any), 1);
  EXPECT_EQ(policy.count(17, any), 0);
  EXPECT_EQ(policy.count(1000, any), 0);
}

TEST(DraftPolicy, RangesOfBatchSizesSayHowMany) {
  const DraftPolicy policy({.most = 4, .free_tokens = 2, .per_batch_size = {{1, 2, 3}, {5, 8, 0}}});
  Acceptance any;
  EXPECT_EQ(policy.count(2, any), 3);
  EXPECT_EQ(policy.count(3, any), 4);  // in no range
  EXPECT_EQ(policy.count(5, any), 0);
  EXPECT_EQ(policy.count(9, any), 4);
}

TEST(DraftPolicy, DraftsThatAreNotAcceptedBecomeRare) {
  const DraftPolicy policy({.most = 4, .by_acceptance = true});
  Acceptance never;
  EXPECT_EQ(policy.count(1, never), 4);
  for (int i = 0; i < 100; ++i) never.note(false);
  int draft_tokens = 0;
  for (int step = 0; step < 10 * DraftPolicy::kProbeEvery; ++step) draft_tokens += policy.count(1, never);
  EXPECT_EQ(draft_tokens, 10);
  for (int i = 0; i < 100; ++i) never.note(true);
  EXPECT_EQ(policy.count(1, never), 4);
}

// Whatever has happened: the count is in its bounds, and neither a better record nor a smaller batch lowers
// it.
TEST(DraftPolicy, FollowsTheRecordAndTheBatch) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int most = 1 + static_cast<int>(random() % kDraftTokensMax);
    const int free_tokens = static_cast<int>(random() % 100);
    const DraftPolicy policy({.most = most, .free_tokens = free_tokens, .by_acceptance = true});
    Acceptance record;
    const auto truth = random() % 11;
    for (int i = 0; i < 60; ++i) {
      record.note(random() % 10 < truth);
      EXPECT_GE(record.rate(), 0);
      EXPECT_LE(record.rate(), Acceptance::kOne);
    }
    Acceptance better = record;
    for (int i = 0; i < 5; ++i) better.note(true);
    int last = most;
    for (int sequences = 1; sequences < 120; sequences += 7) {
      Acceptance now = record, then = better;
      const int count = policy.count(sequences, now);
      EXPECT_GE(count, 0);
      EXPECT_LE(count, last);
      EXPECT_GE(policy.count(sequences, then), count);
      EXPECT_TRUE(count == 0 || free_tokens == 0 || sequences <= free_tokens / 2);
      last = count;
    }
  }
}

}  // namespace
}  // namespace octavo
