#include "media/padded_size.h"

#include <algorithm>
#include <cmath>

namespace octavo::media {
namespace {

struct Extent {
  int width, height;
};

Extent scaled(int width, int height, const PaddedSizeRule& rule) {
  const int longest = rule.side_max * rule.patch_size;
  const double across = std::max(1, width / rule.patch_size), down = std::max(1, height / rule.patch_size);
  const double scale =
      std::min({1.0, std::sqrt(rule.patches_max / (across * down)), static_cast<double>(longest) / height,
                static_cast<double>(longest) / width});
  const auto side = [&](int pixels) { return std::clamp(static_cast<int>(pixels * scale), 1, longest); };
  return {side(width), side(height)};
}

}  // namespace

Result<PartGrid> padded_size_grid(int width, int height, const PaddedSizeRule& rule) {
  const Extent size = scaled(width, height, rule);
  const auto padded = [&](int side) { return (side + rule.unit - 1) / rule.unit * rule.unit; };
  return PartGrid{.width = padded(size.width), .height = padded(size.height)};
}

Image pad_image(const Image& image, const PartGrid& grid, const PaddedSizeRule& rule, Filter filter) {
  const Extent size = scaled(image.width, image.height, rule);
  Image frame = plain(grid.width, grid.height, 0);
  paste(resize(image, size.width, size.height, filter), 0, 0, frame);
  return frame;
}

}  // namespace octavo::media
