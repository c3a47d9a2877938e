// Predicts the load of the next window from the loads of earlier windows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  // Returns a prediction for each window from the earlier windows. The first value has no meaning.
  std::vector<double> (*predict)(std::span<const double> loads);
  bool foresees = false;  // reads the load of the predicted window, so it is only for dry runs
};
std::span<const Predictor> predictors();
const Predictor* find_predictor(std::string_view name);  // null: unknown name

// Returns the prediction for the next window. `loads` has the loads of earlier windows, at least one.
double next_load(const Predictor& predictor, std::span<const double> loads);

}  // namespace octavo::fleet
