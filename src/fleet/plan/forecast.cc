#include "fleet/plan/forecast.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

std::vector<double> predict_last(std::span<const double> loads) {
  std::vector<double> predicted(loads.begin(), loads.end());
  std::ranges::rotate(predicted, predicted.end() - 1);
  return predicted;
}

// Double exponential smoothing (Holt, 1957). The percentages are the weights of a new window in the level
// and in the trend.
template <int kLevelPercent, int kTrendPercent>
std::vector<double> predict_trend(std::span<const double> loads) {
  constexpr double kLevelShare = kLevelPercent / 100.0, kTrendShare = kTrendPercent / 100.0;
  std::vector<double> predicted{loads[0]};
  double level = loads[0], trend = 0;
  for (std::size_t i = 1; i < loads.size(); ++i) {
    predicted.push_back(std::max(0.0, level + trend));
    const double before = level;
    level = kLevelShare * loads[i] + (1 - kLevelShare) * (level + trend);
    trend = kTrendShare * (level - before) + (1 - kTrendShare) * trend;
  }
  return predicted;
}

std::vector<double> predict_truly(std::span<const double> loads) { return {loads.begin(), loads.end()}; }

constexpr Predictor kPredictors[] = {
    {"constant", "the load of the previous window", predict_last},
    {"trend", "a smoothed level and trend (Holt)", predict_trend<50, 20>},
    {"smooth", "as trend, but slower, for windows with few requests, whose loads vary randomly",
     predict_trend<30, 5>},
    {"oracle", "the real load of the next window, as the upper bound of all predictors", predict_truly, true},
};

}  // namespace

std::span<const Predictor> predictors() { return kPredictors; }

const Predictor* find_predictor(std::string_view name) {
  const auto found = std::ranges::find(kPredictors, name, &Predictor::name);
  return found != std::end(kPredictors) ? found : nullptr;
}

double next_load(const Predictor& predictor, std::span<const double> loads) {
  std::vector<double> known(loads.begin(), loads.end());
  known.push_back(0);  // placeholder that the predictor does not read
  return predictor.predict(known).back();
}

}  // namespace octavo::fleet
