#include "fleet/decide/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/test_fleet.h"

namespace octavo::fleet {
namespace {

double unit(std::uint64_t stream, std::uint64_t n) {
  return static_cast<double>(random_bits(stream, n) >> 11) * 0x1p-53;
}

OnlineFit::Inputs draw(std::uint64_t n) {
  OnlineFit::Inputs x{1};
  for (std::size_t i = 1; i < x.size(); ++i) x[i] = unit(i, n);
  return x;
}

double truth(const OnlineFit::Inputs& x, const OnlineFit::Inputs& weights) {
  double y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) y += weights[i] * x[i];
  return y;
}

TEST(OnlineFit, FindsALineInNoise) {
  const OnlineFit::Inputs weights{20, 65, 65, 100, 8, 0};
  OnlineFit fit;
  double error = 0, mean_error = 0, sum = 0;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const auto x = draw(n);
    const double exact = truth(x, weights);
    if (n >= 1000) {
      sum += exact;
      error += std::abs(fit.predict(x) - exact);
      mean_error += std::abs(139 - exact);
    }
    fit.learn(x, exact * (0.9 + 0.2 * unit(9, n)));
  }
  EXPECT_TRUE(fit.ready());
  EXPECT_LT(error / sum, 0.03) << "of noise of 5 % on average";
  EXPECT_LT(error, mean_error / 5) << "than the mean of all is";
}

TEST(OnlineFit, FollowsWhatChanges) {
  OnlineFit fit;
  const OnlineFit::Inputs before{20, 65, 0, 0, 0, 0}, after{50, 130, 0, 0, 0, 0};
  for (std::uint64_t n = 0; n < 1000; ++n) fit.learn(draw(n), truth(draw(n), before));
  for (std::uint64_t n = 0; n < 1000; ++n) fit.learn(draw(n), truth(draw(n), after));
  EXPECT_NEAR(fit.predict(draw(7)), truth(draw(7), after), 2);
}

TEST(OnlineFit, WhatNeverChangesDoesNotBlowUp) {
  OnlineFit fit;
  const OnlineFit::Inputs idle{1, 0, 0, 0, 0, 0};
  for (int i = 0; i < 1'000'000; ++i) fit.learn(idle, 30 + i % 2);
  EXPECT_NEAR(fit.predict(idle), 30.5, 0.5);
  for (std::uint64_t n = 0; n < 500; ++n) fit.learn(draw(n), 30);
  EXPECT_NEAR(fit.predict(draw(3)), 30, 1);
}

// Three endpoints with a TTFT of 10, 40 and 200 ms, and a TPOT of 1, 2 and 5 ms.
class Predicting : public testing::Test {
 protected:
  Predicting() {
    PipelineConfig config{{{"", "predicted-latency-producer", {{"streamingMode", true}}},
                           {"", "slo-headroom-tier-filter", {{"epsilonExploreNeg", 0}}},
                           {"", "latency-scorer"},
                           {"most", "latency-scorer", {{"headroomSelectionStrategy", "most"}}}},
                          {{"slo-headroom-tier-filter"}, {"latency-scorer"}}};
    policy.emplace(*Pipeline::make(config));
    config.steps[1].plugin = "most";
    roomy.emplace(*Pipeline::make(config));
    for (const EndpointId id : {0, 1, 2}) fleet.inflight.book(id, 1, 1);  // so that no endpoint is idle
  }

  static void teach(Pipeline& pipeline) {
    constexpr double kTtft[] = {10, 40, 200}, kTpot[] = {1, 2, 5};
    for (std::uint64_t n = 0; n < 50; ++n)
      for (const EndpointId id : {0, 1, 2})
        pipeline.predictor()->learn(id, {.ttft = {1}, .tpot = {1}}, kTtft[id], kTpot[id]);
  }

  std::vector<EndpointId> rank(Pipeline& pipeline, std::string ttft_ms, std::string tpot_ms = "100") {
    RouteRequest request;
    request.headers = {{"x-slo-ttft-ms", std::move(ttft_ms)}, {"x-llm-d-slo-tpot-ms", std::move(tpot_ms)}};
    return fleet.rank(pipeline, request);
  }

  TestFleet fleet{3};
  std::optional<Pipeline> policy, roomy;
};

TEST_F(Predicting, WhoKeepsWhatIsAllowedIsLeft) {
  using testing::ElementsAre;
  teach(*policy);
  teach(*roomy);
  EXPECT_THAT(rank(*policy, "100"), ElementsAre(1, 0))
      << "the one with the least room, among those who have any";
  EXPECT_THAT(rank(*roomy, "100"), ElementsAre(0, 1));
  EXPECT_THAT(rank(*policy, "1000", "3"), ElementsAre(1, 0)) << "one is too slow from token to token";
  EXPECT_THAT(rank(*policy, "20", "1.5"), ElementsAre(0));
  EXPECT_THAT(rank(*policy, "5"), ElementsAre(0, 1, 2)) << "nobody does: who misses it by the least";
  EXPECT_THAT(rank(*roomy, "5"), ElementsAre(0, 1, 2)) << "never who misses it by the most";
  EXPECT_THAT(rank(*policy, "", ""), ElementsAre(0, 1, 2)) << "nothing is asked for: who is fast";
}

TEST_F(Predicting, WhoCannotBeInTimeIsRefused) {
  Pipeline admits = *Pipeline::make(
      {{{"", "predicted-latency-producer", {{"streamingMode", true}}}, {"", "latency-slo-admitter"}}});
  const auto refused = [&](int priority, const char* ttft_ms) {
    RouteRequest request;
    if (ttft_ms) request.headers = {{"x-slo-ttft-ms", ttft_ms}, {"x-slo-tpot-ms", "100"}};
    const auto view = fleet.fleet.view();
    Candidates all;
    for (const Member& member : view->members) all.push_back(&member);
    Cycle cycle{*view, request, fleet.inflight, fleet.pace, 0, Draws(1)};
    return admits.refusal(cycle, priority, all).has_value();
  };
  for (const EndpointId id : {0, 1, 2})
    fleet.fleet.update(id, [](EndpointState& s) { s.running = 1, s.kv_usage = 0.5; });
  EXPECT_FALSE(refused(-1, "5")) << "nothing is predicted";
  teach(admits);
  EXPECT_TRUE(refused(-1, "5"));
  EXPECT_FALSE(refused(0, "5"));
  EXPECT_FALSE(refused(-1, nullptr));
  EXPECT_FALSE(refused(-1, "50"));
  fleet.fleet.update(2, [](EndpointState& s) { s.running = 0; });
  EXPECT_FALSE(refused(-1, "5")) << "one is idle";
}

TEST_F(Predicting, WhatIsNotKnownYetIsJudgedByItsState) {
  fleet.fleet.update(0, [](EndpointState& s) { s.waiting = 3; });
  fleet.fleet.update(1, [](EndpointState& s) { s.kv_usage = 0.5; });
  EXPECT_EQ(rank(*policy, "100").front(), 2U);
  teach(*policy);
  EXPECT_EQ(rank(*policy, "100").front(), 1U);
  policy->forget(1);
  EXPECT_EQ(rank(*policy, "100").front(), 0U) << "who is not known does not keep it";
}

}  // namespace
}  // namespace octavo::fleet
