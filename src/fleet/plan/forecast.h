// Predicts the load of the next window from earlier windows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  // Predicts each window from the earlier windows; the first value is unused.
  std::vector<double> (*predict)(std::span<const double> loads);
  bool foresees = false;  // reads the predicted window itself: for dry runs only
};
std::span<const Predictor> predictors();
const Predictor* find_predictor(std::string_view name);  // null if unknown

// Prediction for the window after the given ones (at least one).
double next_load(const Predictor& predictor, std::span<const double> loads);

}  // namespace octavo::fleet
