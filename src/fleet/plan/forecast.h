// Predicts the load of the next window from earlier windows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  // Predicts each window from the windows before it; the first value is not used.
  std::vector<double> (*predict)(std::span<const double> loads);
  bool foresees = false;  // uses the predicted window itself, so it works only for dry runs
};
std::span<const Predictor> predictors();
const Predictor* find_predictor(std::string_view name);  // null: unknown name

// The prediction for the next window, from at least one earlier window.
double next_load(const Predictor& predictor, std::span<const double> loads);

}  // namespace octavo::fleet
