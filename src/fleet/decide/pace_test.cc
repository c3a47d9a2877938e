#include "fleet/decide/pace.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kStepUs = 10'000;

// Simulates one answer: a prompt of 1,000 tokens at 100 us each, and then output tokens. Returns the time
// at the end.
std::int64_t answer(Pace& pace, EndpointId endpoint, double slower, int output_tokens,
                    std::int64_t now_us = 0) {
  Progress progress{.since_us = now_us, .prompt_tokens = 1000};
  now_us += static_cast<std::int64_t>(100'000 * slower);
  pace.first_token(endpoint, progress, now_us);
  for (int i = 0; i < output_tokens; ++i)
    pace.grow(endpoint, progress, 1, now_us += static_cast<std::int64_t>(kStepUs * slower));
  pace.ended(progress);
  return now_us;
}

TEST(Pace, ComparesEndpointsWithTheMedian) {
  Pace pace;
  EXPECT_EQ(pace.slowness(0), 1);
  for (const EndpointId endpoint : {0, 1, 2}) answer(pace, endpoint, 1, 100);
  const std::int64_t end_us = answer(pace, 3, 8, 100);
  pace.compare(end_us);
  EXPECT_EQ(pace.slowness(0), 1);
  EXPECT_NEAR(pace.slowness(3), 8, 0.2);
  EXPECT_EQ(pace.slowness(4), 1) << "one that has not answered";
}

TEST(Pace, SmallDifferencesComeFromLoad) {
  Pace pace;
  for (const EndpointId endpoint : {0, 1, 2}) answer(pace, endpoint, 1, 100);
  const std::int64_t end_us = answer(pace, 3, 1.4, 100);
  pace.compare(end_us);
  EXPECT_EQ(pace.slowness(3), 1);
}

// A stream may pause because the client does not read, or because a tool runs.
TEST(Pace, APauseDoesNotMakeAnEndpointSlow) {
  Pace pace;
  std::int64_t now_us = 0;
  for (const EndpointId endpoint : {0, 1, 2}) now_us = answer(pace, endpoint, 1, 800);
  Progress progress{.since_us = now_us};
  now_us += 60'000'000;
  pace.grow(0, progress, 8, now_us);
  pace.compare(now_us);
  EXPECT_EQ(pace.slowness(0), 1);
}

TEST(Pace, ComparesEndpointsWithoutStreamsByTheTimeUntilTheyAnswer) {
  Pace pace;
  for (int i = 0; i < 4; ++i)
    for (const EndpointId endpoint : {0, 1, 2}) answer(pace, endpoint, endpoint == 2 ? 3 : 1, 0);
  // With streaming, the first token arrives long before the end of the answer.
  for (int i = 0; i < 4; ++i) answer(pace, 3, 0.1, 20);
  pace.compare(1'000'000);
  EXPECT_EQ(pace.slowness(0), 1);
  EXPECT_NEAR(pace.slowness(2), 3, 0.1);
}

TEST(Pace, KnowsHowManyPromptTokensAnAnswerIsWorth) {
  Pace pace;
  EXPECT_EQ(pace.answer_in_prompt_tokens(), 0);
  std::int64_t now_us = 0;
  for (int i = 0; i < 4; ++i) now_us = answer(pace, 0, 1, 100, now_us);
  pace.compare(now_us);
  EXPECT_NEAR(pace.answer_in_prompt_tokens(), 100 * 10'000 / 100.0, 1);
}

TEST(Pace, TokensThatArriveTogetherCountAsOverTheirTime) {
  Pace pace;
  for (const EndpointId endpoint : {0, 1, 2}) {
    Progress progress;
    // Endpoint 1 sends its tokens in pairs.
    for (int i = 0; i < 100; ++i)
      pace.grow(endpoint, progress, 1, (endpoint == 1 ? i / 2 * 2 + 1 : i) * kStepUs);
  }
  pace.compare(100 * kStepUs);
  EXPECT_EQ(pace.slowness(1), 1);
}

TEST(Pace, AnEndpointThatGetsNoRequestsIsTriedAgain) {
  Pace pace;
  for (const EndpointId endpoint : {0, 1, 2}) answer(pace, endpoint, endpoint == 2 ? 8 : 1, 100);
  std::int64_t now_us = 10'000'000;
  pace.compare(now_us);
  const double before = pace.slowness(2);
  EXPECT_GT(before, 7);
  pace.compare(now_us += 30'000'000);
  EXPECT_LT(pace.slowness(2), 3);
  pace.compare(now_us += 600'000'000);
  EXPECT_LT(pace.slowness(2), 1.01);
  now_us = answer(pace, 2, 8, 16, now_us);
  pace.compare(now_us);
  EXPECT_GT(pace.slowness(2), 7) << "still slow";
}

TEST(Pace, FollowsAnEndpointThatRecovers) {
  Pace pace;
  for (const EndpointId endpoint : {0, 1, 2}) answer(pace, endpoint, endpoint == 2 ? 8 : 1, 100);
  std::int64_t now_us = 10'000'000;
  for (int i = 0; i < 10; ++i) now_us = answer(pace, 2, 1, 100, now_us);
  pace.compare(now_us);
  EXPECT_EQ(pace.slowness(2), 1);
}

TEST(Pace, ForgetsAnEndpointThatLeaves) {
  Pace pace;
  for (const EndpointId endpoint : {0, 1, 2}) answer(pace, endpoint, endpoint == 2 ? 8 : 1, 100);
  pace.forget(2);
  pace.compare(10'000'000);
  EXPECT_EQ(pace.slowness(2), 1);
}

}  // namespace
}  // namespace octavo::fleet
