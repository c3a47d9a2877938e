#include "fleet/plan/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace octavo::fleet {
namespace {

using testing::ElementsAreArray;

TEST(Forecast, EveryPredictorFollowsASteadyLoad) {
  const std::vector<double> steady(20, 500.0);
  for (const Predictor& one : predictors())
    EXPECT_THAT(one.predict(steady), ElementsAreArray(steady)) << one.name;
}

TEST(Forecast, OnlyTheOracleKnowsWhatComes) {
  std::vector<double> loads{3, 1, 4, 1, 5, 9, 2, 6};
  for (const Predictor& one : predictors()) {
    std::vector<double> other = loads;
    other[5] = 1000;
    const auto predicted = one.predict(loads), changed = one.predict(other);
    ASSERT_EQ(predicted.size(), loads.size());
    for (std::size_t i = 1; i <= 5; ++i)
      EXPECT_EQ(predicted[i] == changed[i], one.name != "oracle" || i < 5) << one.name << " " << i;
  }
}

TEST(Forecast, ConstantIsTheWindowBefore) {
  const auto predicted = find_predictor("constant")->predict(std::vector<double>{1, 2, 3});
  EXPECT_EQ(predicted[1], 1);
  EXPECT_EQ(predicted[2], 2);
}

TEST(Forecast, TrendIsCloserToARampAndNeverNegative) {
  std::vector<double> up, down;
  for (int i = 0; i < 40; ++i) {
    up.push_back(100 + 10 * i);
    down.push_back(i < 10 ? 1000 : 0);
  }
  EXPECT_NEAR(find_predictor("trend")->predict(up).back(), up.back(), 2);
  EXPECT_EQ(find_predictor("constant")->predict(up).back(), up.back() - 10);
  for (const double load : find_predictor("trend")->predict(down)) EXPECT_GE(load, 0);
}

TEST(Forecast, SmoothIsMovedLessByChance) {
  std::vector<double> noisy;
  for (int i = 0; i < 100; ++i) noisy.push_back(1000 + ((i + 1) % 3 - 1) * 200);
  const auto farthest = [&](const char* name) {
    double most = 0;
    for (const double load : find_predictor(name)->predict(noisy)) most = std::max(most, std::abs(load - 1000));
    return most;
  };
  EXPECT_LT(farthest("smooth"), 0.7 * farthest("trend"));
}

TEST(Forecast, TheNextWindowIsThatBehindTheLast) {
  const std::vector<double> loads{3, 1, 4, 1, 5};
  EXPECT_EQ(next_load(*find_predictor("constant"), loads), 5);
  const std::vector<double> more{3, 1, 4, 1, 5, 9};
  EXPECT_EQ(next_load(*find_predictor("trend"), loads), find_predictor("trend")->predict(more).back());
}

TEST(Forecast, UnknownNamesHaveNone) { EXPECT_EQ(find_predictor("tea leaves"), nullptr); }

}  // namespace
}  // namespace octavo::fleet
