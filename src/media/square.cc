#include "media/square.h"

#include <algorithm>

namespace octavo::media {
namespace {

Image middle_of(const Image& image, int size) {
  const int left = (image.width - size) / 2, top = (image.height - size) / 2;
  Image out{size, size, {}};
  for (int y = top; y < top + size; ++y) {
    const auto row = image.pixels.begin() + (std::ptrdiff_t{y} * image.width + left) * 3;
    out.pixels.insert(out.pixels.end(), row, row + std::ptrdiff_t{3} * size);
  }
  return out;
}

}  // namespace

Result<PartGrid> square_grid(int width, int height, const SquareRule& rule) {
  if (rule.crop) TRY_VOID(check_ratio(width, height));
  return PartGrid{.width = rule.size, .height = rule.size};
}

Image cut_square(const Image& image, const SquareRule& rule, Filter filter) {
  if (!rule.crop) return resize(image, rule.size, rule.size, filter);
  const int shorter = std::min(image.width, image.height);
  const auto scaled = [&](int side) { return static_cast<int>(std::int64_t{rule.size} * side / shorter); };
  return middle_of(resize(image, scaled(image.width), scaled(image.height), filter), rule.size);
}

}  // namespace octavo::media
