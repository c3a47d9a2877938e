#include "fleet/simulate/traffic_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/testing/scratch_directory.h"

namespace octavo::fleet {
namespace {

std::size_t between(const Trace& trace, double begin, double end) {
  return static_cast<std::size_t>(std::ranges::count_if(trace.requests, [&](const TraceRequest& request) {
    const double seconds = static_cast<double>(request.arrival_us) * 1e-6;
    return seconds >= begin && seconds < end;
  }));
}

std::vector<TokenId> tokens_of(const Trace& trace, const TraceRequest& request) {
  std::vector<TokenId> tokens;
  write_tokens(trace, request, tokens);
  return tokens;
}

TEST(TrafficShape, SessionsComeAtTheRate) {
  const auto trace = generate_traffic({.seconds = 4000, .session_rate = 5}, 512, 1);
  ASSERT_TRUE(trace) << trace.error().message;
  // the tolerance is 3.5 standard deviations
  EXPECT_NEAR(static_cast<double>(trace->requests.size()), 20'000, 500);
  EXPECT_TRUE(std::ranges::is_sorted(trace->requests, {}, &TraceRequest::arrival_us));
  EXPECT_LT(trace->requests.back().arrival_us, 4'000'000'000);
}

TEST(TrafficShape, TheRateFollowsTheDayAndItsBursts) {
  const TrafficShape day{.seconds = 8000, .session_rate = 5, .daily_swing = 0.8, .day_seconds = 8000};
  const auto trace = *generate_traffic(day, 512, 1);
  EXPECT_NEAR(static_cast<double>(between(trace, 0, 400)), 400 * 5 * 0.21, 100);
  EXPECT_NEAR(static_cast<double>(between(trace, 3800, 4200)), 400 * 5 * 1.8, 300);
  const TrafficShape bursts{
      .seconds = 1000, .session_rate = 5, .burst_every = 200, .burst_seconds = 20, .burst_factor = 10};
  const auto burst = *generate_traffic(bursts, 512, 1);
  EXPECT_NEAR(static_cast<double>(between(burst, 180, 200)), 20 * 50, 160);
  EXPECT_NEAR(static_cast<double>(between(burst, 100, 120)), 20 * 5, 50);
  const TrafficShape still{.seconds = 100, .session_rate = 20, .daily_swing = 1, .day_seconds = 100};
  // The rate is 0 at the beginning.
  EXPECT_GT(generate_traffic(still, 512, 1)->requests.size(), 1000U);
}

TEST(TrafficShape, TurnsHoldThoseBeforeThemAndGroupsShareTheirBeginning) {
  const TrafficShape shape{.seconds = 500,
                           .session_rate = 0.2,
                           .turns = 3,
                           .groups = 2,
                           .group_tokens = 64,
                           .input_tokens = 40,
                           .output_tokens = 10,
                           .spread = 0.5};
  const auto trace = *generate_traffic(shape, 16, 3);
  std::set<std::vector<TokenId>> groups, sessions;
  std::size_t later = 0;
  for (const TraceRequest& request : trace.requests) {
    const std::vector<TokenId> tokens = tokens_of(trace, request);
    groups.insert({tokens.begin(), tokens.begin() + 64});
    sessions.insert({tokens.begin(), tokens.begin() + 80});
    for (const TraceRequest& before : trace.requests) {
      if (before.arrival_us >= request.arrival_us) continue;
      const std::vector<TokenId> begin = tokens_of(trace, before);
      later +=
          begin.size() < tokens.size() && std::ranges::equal(begin, std::span(tokens).first(begin.size()));
    }
  }
  EXPECT_EQ(groups.size(), 2U);
  EXPECT_NEAR(static_cast<double>(sessions.size()), 100, 40);
  EXPECT_GT(later, trace.requests.size() / 2) << "turns behind others of their session";
}

TEST(TrafficShape, TheSameSeedIsTheSameTraffic) {
  const TrafficShape shape{.seconds = 100, .turns = 2, .spread = 0.3};
  const auto a = *generate_traffic(shape, 512, 1), b = *generate_traffic(shape, 512, 1);
  ASSERT_EQ(a.requests.size(), b.requests.size());
  EXPECT_EQ(a.blocks, b.blocks);
  for (std::size_t i = 0; i < a.requests.size(); ++i)
    EXPECT_EQ(a.requests[i].arrival_us, b.requests[i].arrival_us);
  EXPECT_NE(generate_traffic(shape, 512, 2)->requests.front().arrival_us, a.requests.front().arrival_us);
}

TEST(TrafficShape, ErrorsNameTheField) {
  const ScratchDirectory scratch;
  const auto error = [&](std::string_view text) {
    scratch.write("traffic.json", text);
    return read_traffic_shape((scratch / "traffic.json").string()).error();
  };
  EXPECT_EQ(error(R"({"session_rate": 0})").field, "session_rate");
  EXPECT_EQ(error(R"({"spread": 1})").field, "spread");
  EXPECT_EQ(error(R"({"turns": "2"})").field, "turns");
  EXPECT_EQ(error(R"({"rate": 2})").field, "rate");
  EXPECT_EQ(generate_traffic({.seconds = 1, .session_rate = 1e-6}, 512, 1).error().field, "session_rate");
  EXPECT_EQ(generate_traffic({.session_rate = 1e6}, 512, 1).error().field, "session_rate");
  scratch.write("good.json", R"({"session_rate": 3, "turns": 4})");
  EXPECT_EQ(read_traffic_shape((scratch / "good.json").string())->turns, 4);
}

TEST(TrafficShape, UsersGoOnWhenTheyAreAnswered) {
  const TrafficShape shape{.users = 3,
                           .user_sessions = 2,
                           .turns = 4,
                           .think_seconds = 5,
                           .input_tokens = 600,
                           .output_tokens = 424};
  const Trace trace = generate_traffic(shape, 512, 1).value();
  EXPECT_TRUE(trace.closed);
  ASSERT_EQ(trace.requests.size(), 24U);
  for (std::uint32_t i = 0; i < 24; ++i) {
    const TraceRequest& request = trace.requests[i];
    EXPECT_EQ(request.follows, i % 8 == 0 ? kNoRequest : i - 1) << "one after the other, also over sessions";
    EXPECT_EQ(request.input_tokens, 600 + static_cast<int>(i % 4) * 1024) << "a new session has no past";
  }
  EXPECT_EQ(generate_traffic({.users = 1e6, .user_sessions = 1e6}, 512, 1).error().field, "users");
  Trace changed = trace;
  EXPECT_EQ(change_trace(changed, {.copies = 2}).error().field, "copies");
}

}  // namespace
}  // namespace octavo::fleet
