// Predicts the load of the next window from earlier windows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  // Returns a prediction for each window from the windows before it. The first value has no meaning.
  std::vector<double> (*predict)(std::span<const double> loads);
  bool foresees = false;  // uses the load of the predicted window, so it works only in dry runs
};
std::span<const Predictor> predictors();
const Predictor* find_predictor(std::string_view name);  // null: unknown name

// Returns the prediction for the next window. loads: of earlier windows, at least one.
double next_load(const Predictor& predictor, std::span<const double> loads);

}  // namespace octavo::fleet
