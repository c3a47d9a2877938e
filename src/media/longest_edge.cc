#include "media/longest_edge.h"

#include <algorithm>
#include <cmath>

namespace octavo::media {

Result<PartGrid> longest_edge_grid(int width, int height, const LongestEdgeRule& rule) {
  TRY_VOID(check_ratio(width, height));
  const double ratio = std::max(1.0, std::max(height, width) / static_cast<double>(rule.longest));
  const auto in_units = [&](int side) {
    const int shrunk = std::max(1, static_cast<int>(std::floor(side / ratio)));
    return (shrunk - 1) / rule.unit * rule.unit + rule.unit;
  };
  return PartGrid{.width = in_units(width), .height = in_units(height)};
}

}  // namespace octavo::media
