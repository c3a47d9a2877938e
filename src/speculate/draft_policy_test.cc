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
  EXPECT_EQ(policy.most_of_step(4), 16);
  EXPECT_EQ(policy.most_of_step(1000), 24);
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
  // After 16, 32, 64, 128 steps, then after every 256.
  int draft_tokens = 0;
  for (int step = 0; step < 240 + 6 * Acceptance::kProbeEveryMost; ++step) {
    const int count = policy.count(1, never);
    for (int i = 0; i < count; ++i) never.note(false);
    draft_tokens += count;
  }
  EXPECT_EQ(draft_tokens, 4 + 6);
  for (int i = 0; i < 100; ++i) never.note(true);
  EXPECT_EQ(policy.count(1, never), 4);
}

// Where draft tokens are accepted nowhere, new sequences do not begin with many.
TEST(DraftPolicy, ANewSequenceBeginsWithTheRecordOfAll) {
  DraftPolicy policy({.most = 4, .by_acceptance = true});
  Acceptance first, second, third;
  EXPECT_EQ(policy.count(1, first), 4);
  for (int i = 0; i < 200; ++i) policy.note(first, false);
  EXPECT_EQ(policy.count(1, second), 0);
  for (int i = 0; i < 200; ++i) policy.note(second, true);
  EXPECT_EQ(policy.count(1, third), 4);
  EXPECT_EQ(policy.count(1, first), 0);
}

// A text that begins to repeat itself gets draft tokens again as soon as one is accepted.
TEST(DraftPolicy, OneThatIsAcceptedIsFollowedByOthers) {
  const DraftPolicy policy({.most = 4, .by_acceptance = true});
  Acceptance record;
  for (int i = 0; i < 100; ++i) record.note(false);
  int step = 0;
  while (policy.count(1, record) == 0) ++step;
  EXPECT_LT(step, Acceptance::kProbeEvery);
  record.note(true);
  EXPECT_EQ(policy.count(1, record), 1);
  for (int i = 0; i < 8; ++i) record.note(true);
  EXPECT_GE(policy.count(1, record), 2);
}

TEST(DraftPolicy, SaysWhetherDraftTokensMayBeWantedSoon) {
  const DraftPolicy policy({.most = 4, .free_tokens = 8, .by_acceptance = true});
  Acceptance record;
  EXPECT_TRUE(policy.may_want(4, record, 1));
  EXPECT_FALSE(policy.may_want(5, record, 1000));
  for (int i = 0; i < 100; ++i) record.note(false);
  for (int tries = 0; tries < 8; ++tries) {
    // However long the wait is: 20 steps before its end at the latest.
    int steps_ahead = 0;
    for (bool tried = false; !tried;) {
      steps_ahead = policy.may_want(1, record, 20) ? steps_ahead + 1 : 0;
      tried = policy.count(1, record) > 0;
    }
    EXPECT_EQ(steps_ahead, tries == 0 ? Acceptance::kProbeEvery : 20);
    record.note(false);
  }
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
