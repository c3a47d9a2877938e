#include "media/patch_budget.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace octavo::media {

Result<PartGrid> patch_budget_grid(int width, int height, const PatchBudgetRule& rule) {
  TRY_VOID(check_ratio(width, height));
  // Rounds half to even, like Python.
  const auto patches = [&](int side) { return std::nearbyint(static_cast<double>(side) / rule.unit + 0.5); };
  double rows = patches(height), columns = patches(width);
  const double factor = std::min(std::sqrt(rule.patches_max / (rows * columns)), 1.0);
  rows = std::max(1.0, std::floor(factor * rows));
  columns = std::max(1.0, std::floor(factor * columns));
  if (rule.patches_max > rule.patches_min && rows * columns < rule.patches_min) {
    const double growth = std::sqrt(rule.patches_min / (rows * columns));
    rows = std::ceil(growth * rows);
    columns = std::ceil(growth * columns);
  }
  // Makes `side` a multiple of the token's side: a larger one if the patches stay within the limit.
  const auto in_tokens = [&](double side, double other) {
    const double rest = std::fmod(side, rule.merge), larger = side + rule.merge - rest;
    if (rest == 0) return side;
    return larger * other <= rule.patches_max ? larger : std::max<double>(rule.merge, side - rest);
  };
  rows = in_tokens(rows, columns);
  columns = in_tokens(columns, rows);
  return PartGrid{.width = static_cast<int>(columns) * rule.unit,
                  .height = static_cast<int>(rows) * rule.unit};
}

}  // namespace octavo::media
