#include "media/patch_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace octavo::media {

Result<PartGrid> patch_search_grid(int width, int height, const PatchSearchRule& rule) {
  TRY_VOID(check_ratio(width, height));
  const int unit = rule.unit;
  const std::int64_t own = std::max<std::int64_t>(1, std::int64_t{width / unit} * (height / unit));
  const std::int64_t most = std::clamp<std::int64_t>(own, rule.patches_min, rule.patches_max);
  const auto patches = [&](int side, double scale) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(side * scale / unit)));
  };
  // The same search as transformers has, because its steps decide between two sizes.
  constexpr double kEps = 1e-5;
  double least = kEps / 10, largest = 100;
  while (largest - least >= kEps) {
    const double scale = (least + largest) / 2;
    (patches(width, scale) * patches(height, scale) <= most ? least : largest) = scale;
  }
  return PartGrid{.width = static_cast<int>(patches(width, least)) * unit,
                  .height = static_cast<int>(patches(height, least)) * unit};
}

}  // namespace octavo::media
