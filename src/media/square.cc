#include "media/square.h"

#include <algorithm>

namespace octavo::media {

Result<PartGrid> square_grid(int width, int height, const SquareRule& rule) {
  if (rule.crop) TRY_VOID(check_ratio(width, height));
  return PartGrid{.width = rule.size, .height = rule.size};
}

Image cut_square(const Image& image, const SquareRule& rule, Filter filter) {
  if (!rule.crop) return resize(image, rule.size, rule.size, filter);
  const int shorter = std::min(image.width, image.height);
  const auto scaled = [&](int side) { return static_cast<int>(std::int64_t{rule.size} * side / shorter); };
  const Image resized = resize(image, scaled(image.width), scaled(image.height), filter);
  return crop(resized, (resized.width - rule.size) / 2, (resized.height - rule.size) / 2, rule.size);
}

}  // namespace octavo::media
