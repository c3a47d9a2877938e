// What the load of the next window will be, from those that were.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace octavo::fleet {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  // For each window, from the windows before it; of the first one nothing is known, and its place means
  // nothing.
  std::vector<double> (*predict)(std::span<const double> loads);
  bool foresees = false;  // it looks at the very window: for dry runs only
};
std::span<const Predictor> predictors();
const Predictor* find_predictor(std::string_view name);  // null: nobody knows it

// Of the window behind these, of which there is at least one.
double next_load(const Predictor& predictor, std::span<const double> loads);

}  // namespace octavo::fleet
