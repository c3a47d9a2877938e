#include "engine/draft/draft_policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace octavo {
namespace {

TEST(DraftPolicy, AsksForAsManyAsThereMayBe) {
  Acceptance any;
  EXPECT_EQ(DraftPolicy({.most = 4}).count(1, any), 4);
  EXPECT_EQ(DraftPolicy({.most = 4}).count(1000, any), 4);
}

TEST(DraftPolicy, AStepThatIsFullTakesNoDrafts) {
  DraftPolicy policy({.most = 4, .free_tokens = 32});
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
  DraftPolicy policy({.most = 4, .free_tokens = 2, .per_batch_size = {{1, 2, 3}, {5, 8, 0}}});
  Acceptance any;
  EXPECT_EQ(policy.count(2, any), 3);
  EXPECT_EQ(policy.count(3, any), 4);  // above all ranges
  EXPECT_EQ(policy.count(5, any), 0);
  EXPECT_EQ(policy.count(9, any), 4);
}

// If all draft tokens were rejected so far, new sequences do not start with many draft tokens.
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

// Simulates one sequence. `is_accepted` decides which draft tokens are accepted. Steps and drafts take the
// given times.
struct Timed {
  DraftPolicy policy;
  std::function<std::int64_t(int)> step_ns;
  std::int64_t draft_ns;
  std::int64_t read_ns;
  std::int64_t first_ns = 0;  // additional time of the first draft token in a step
  Acceptance record = {};
  std::int64_t ns = 0, tokens = 0, drafts = 0;

  void step(int sequences, const std::function<bool()>& is_accepted) {
    int rows = 0;
    std::int64_t first = policy.may_want(sequences, record) ? read_ns : 0, further = 0;
    for (int i = 0; i < sequences; ++i) {
      const int count = policy.count(sequences, record);
      first += count > 0 ? first_ns + draft_ns : 0;
      further += count > 1 ? draft_ns * (count - 1) : 0;
      drafts += count;
      rows += 1 + count;
      ++tokens;
      bool accepted = true;
      for (int k = 0; k < count && accepted; ++k) {
        accepted = is_accepted();
        policy.note(record, accepted);
        tokens += accepted ? 1 : 0;
      }
    }
    policy.note_proposed(first, further);
    policy.note_step(rows, step_ns(rows));
    ns += first + further + step_ns(rows);
  }
};

Timed timed_of(int most, std::int64_t draft_ns, std::int64_t read_ns = 0, int lead = 0) {
  const auto step_ns = [](int rows) { return std::int64_t{90'000} + 10'000 * rows; };
  StepTimes times;
  for (const int rows : {1, 2, 4, 8, 16, 32}) times.note(rows, step_ns(rows));
  return {DraftPolicy({.most = most, .free_tokens = 32, .by_acceptance = true, .times = times, .lead = lead}),
          step_ns, draft_ns, read_ns};
}

// Rejected draft tokens take at most 1% of the time, however slow the proposer is.
TEST(DraftPolicy, DraftsThatAreNeverAcceptedCostHardlyAnything) {
  for (const int sequences : {1, 2, 4, 8, 16})
    for (const std::int64_t draft_ns : {0, 1'000, 30'000, 1'000'000})
      for (const std::int64_t read_ns : {0, 15'000}) {
        SCOPED_TRACE(fmt::format("{} sequences, {} ns, {} ns", sequences, draft_ns, read_ns));
        Timed run = timed_of(4, draft_ns, read_ns, read_ns > 0 ? 32 : 0);
        for (int i = 0; i < 2000; ++i) run.step(sequences, [] { return false; });
        const std::int64_t drafts = run.drafts;
        run.ns = run.tokens = 0;
        for (int i = 0; i < 40'000; ++i) run.step(sequences, [] { return false; });
        const double alone = static_cast<double>(run.step_ns(sequences)) / sequences;
        EXPECT_LE(static_cast<double>(run.ns) / static_cast<double>(run.tokens), 1.01 * alone);
        // otherwise the policy could never find out that draft tokens are accepted again
        EXPECT_GT(run.drafts, drafts);
      }
}

// Drafting is never slower than decoding without draft tokens, even near the acceptance rate at which it
// saves no time.
TEST(DraftPolicy, IsNotSlowerThanWithoutAtAnyRate) {
  std::mt19937 random(5);
  for (const int sequences : {1, 4, 8})
    for (const std::int64_t draft_ns : {1'000, 15'000, 40'000})
      for (const unsigned tenths : {1U, 3U, 5U, 7U, 9U}) {
        SCOPED_TRACE(fmt::format("{} sequences, {} ns, 0.{}", sequences, draft_ns, tenths));
        Timed run = timed_of(4, draft_ns);
        const auto is_accepted = [&] { return random() % 10 < tenths; };
        for (int i = 0; i < 2000; ++i) run.step(sequences, is_accepted);
        run.ns = run.tokens = 0;
        for (int i = 0; i < 20'000; ++i) run.step(sequences, is_accepted);
        const double alone = static_cast<double>(run.step_ns(sequences)) / sequences;
        EXPECT_LE(static_cast<double>(run.ns) / static_cast<double>(run.tokens), 1.02 * alone);
      }
}

// The first pass of a head in a step has a fixed cost, and further draft tokens are cheap. The policy
// chooses a number of draft tokens close to the best one, and 0 if no number saves time.
TEST(DraftPolicy, AFirstDraftTokenThatIsDearDoesNotMakeTheOthersDear) {
  const auto step_ns = [](int rows) { return std::int64_t{90'000} + 10'000 * rows; };
  for (const int sequences : {1, 4})
    for (const std::int64_t first_ns : {20'000, 40'000, 80'000})
      for (const int tenths : {0, 4, 5, 6, 7, 8, 9}) {
        SCOPED_TRACE(fmt::format("{} sequences, {} ns, 0.{}", sequences, first_ns, tenths));
        double best = 0;
        for (int count = 0; count <= 6; ++count) {
          double tokens = 1, likely = 1;
          for (int k = 0; k < count; ++k) tokens += likely *= tenths * 0.1;
          const std::int64_t proposer = count == 0 ? 0 : first_ns + 2'000 * count;
          best = std::max(best,
                          sequences * tokens /
                              static_cast<double>(sequences * proposer + step_ns(sequences * (1 + count))));
        }
        std::mt19937 random(7);
        Timed run = timed_of(6, 2'000);
        run.first_ns = first_ns;
        const auto is_accepted = [&] { return static_cast<int>(random() % 10) < tenths; };
        for (int i = 0; i < 2000; ++i) run.step(sequences, is_accepted);
        run.ns = run.tokens = 0;
        for (int i = 0; i < 20'000; ++i) run.step(sequences, is_accepted);
        EXPECT_GE(static_cast<double>(run.tokens) / static_cast<double>(run.ns), 0.97 * best);
      }
}

// If a text starts to repeat itself, the sequence soon gets draft tokens again, and finally the maximum
// number.
TEST(DraftPolicy, OneThatIsAcceptedIsFollowedByOthers) {
  Timed run = timed_of(4, 5'000);
  for (int i = 0; i < 1000; ++i) run.step(1, [] { return false; });
  for (int i = 0; i < 100; ++i) run.step(1, [] { return true; });
  EXPECT_EQ(run.policy.count(1, run.record), 4);
}

// The policy measures the time of the proposer again, so it also learns that the time has decreased.
TEST(DraftPolicy, AProposerThatIsTooSlowIsAskedForLittle) {
  Timed run = timed_of(4, 200'000);
  for (int i = 0; i < 5000; ++i) run.step(1, [] { return true; });
  const std::int64_t before = run.drafts;
  for (int i = 0; i < 5000; ++i) run.step(1, [] { return true; });
  EXPECT_LT(run.drafts - before, 50);
  run.draft_ns = 5'000;
  for (int i = 0; i < 5000; ++i) run.step(1, [] { return true; });
  EXPECT_EQ(run.policy.count(1, run.record), 4);
}

// may_want() returns true as soon as an exploratory draft is chosen, so that the proposer has time to read
// the text.
TEST(DraftPolicy, SaysWhetherDraftTokensMayBeWantedSoon) {
  Timed run = timed_of(4, 1'000, 0, 20);
  Acceptance any;
  EXPECT_TRUE(run.policy.may_want(4, any));
  EXPECT_FALSE(run.policy.may_want(17, any));
  for (int i = 0; i < 1000; ++i) run.step(1, [] { return false; });
  for (int tries = 0; tries < 3; ++tries) {
    int ahead = 0;
    for (const std::int64_t drafts = run.drafts; run.drafts == drafts;) {
      ahead = run.policy.may_want(1, run.record) ? ahead + 1 : 0;
      run.step(1, [] { return false; });
    }
    if (tries == 0) continue;  // it may have been chosen before may_want()
    EXPECT_EQ(ahead, 20);
  }
}

// In every state, the number is within its limits. It never decreases if the acceptance rate increases or
// the batch gets smaller.
TEST(DraftPolicy, FollowsTheRecordAndTheBatch) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int most = 1 + static_cast<int>(random() % kDraftTokensMax);
    const int free_tokens = static_cast<int>(random() % 100);
    DraftPolicy policy({.most = most, .free_tokens = free_tokens, .by_acceptance = true});
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
