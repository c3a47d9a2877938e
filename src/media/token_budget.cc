#include "media/token_budget.h"

#include <algorithm>
#include <cmath>

namespace octavo::media {

Result<PartGrid> token_budget_grid(int width, int height, const TokenBudgetRule& rule) {
  TRY_VOID(check_ratio(width, height));
  const double pixels = static_cast<double>(rule.tokens_max) * rule.unit * rule.unit;
  const double factor = std::sqrt(pixels / (static_cast<double>(width) * height));
  int columns = static_cast<int>(std::floor(factor * width / rule.unit));
  int rows = static_cast<int>(std::floor(factor * height / rule.unit));
  if (rows == 0) {
    rows = 1;
    columns = std::min(width / height, rule.tokens_max);
  } else if (columns == 0) {
    columns = 1;
    rows = std::min(height / width, rule.tokens_max);
  }
  return PartGrid{.width = columns * rule.unit, .height = rows * rule.unit};
}

}  // namespace octavo::media
