#include "media/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace octavo::media {
namespace {

constexpr int kEdgeMax = 4096;  // pixels; limit of the longer side for every configuration

struct Size {
  int width;
  int height;
};

int even(int n) { return n + n % 2; }
int tiles_of(int n, int tile) { return (n + tile - 1) / tile; }

Size with_longest_edge(Size size, int edge) {
  const double ratio = static_cast<double>(size.width) / size.height;
  return size.width >= size.height ? Size{edge, std::max(1, even(static_cast<int>(edge / ratio)))}
                                   : Size{std::max(1, even(static_cast<int>(edge * ratio))), edge};
}

Size at_most(Size size, int edge) {
  const double ratio = static_cast<double>(size.width) / size.height;
  if (std::max(size.width, size.height) <= edge) return size;
  return size.width >= size.height ? Size{edge, std::max(1, static_cast<int>(edge / ratio))}
                                   : Size{std::max(1, static_cast<int>(edge * ratio)), edge};
}

// Rounds both sides to multiples of a tile, the longer side first.
Size in_tiles(Size size, int tile) {
  const double ratio = static_cast<double>(size.width) / size.height;
  const auto whole = [&](int n) { return tiles_of(n, tile) * tile; };
  if (size.width >= size.height) {
    const int width = whole(size.width);
    return {width, whole(std::max(1, static_cast<int>(width / ratio)))};
  }
  const int height = whole(size.height);
  return {whole(std::max(1, static_cast<int>(height * ratio))), height};
}

// Returns the size after the first scaling, before both sides become multiples of a tile.
Size first_size(int width, int height, const TileRule& rule) {
  return at_most(with_longest_edge({width, height}, rule.longest_edge), kEdgeMax);
}

}  // namespace

PartGrid tile_grid(int width, int height, const TileRule& rule) {
  const int tile = rule.tile_size;
  if (!rule.split) return {tile, tile, 0, 0};
  const Size size = in_tiles(first_size(width, height, rule), tile);
  const bool one = size.width == tile && size.height == tile;
  return {size.width, size.height, one ? 0 : size.height / tile, one ? 0 : size.width / tile};
}

std::vector<Image> cut_tiles(Image image, const PartGrid& grid, const TileRule& rule, Filter filter) {
  const Size size = first_size(image.width, image.height, rule);
  image = resize(image, size.width, size.height, filter);
  image = resize(image, grid.width, grid.height, filter);
  std::vector<Image> tiles;
  for (int row = 0; row < grid.rows; ++row)
    for (int column = 0; column < grid.columns; ++column)
      tiles.push_back(crop(image, column * rule.tile_size, row * rule.tile_size, rule.tile_size));
  tiles.push_back(resize(image, rule.tile_size, rule.tile_size, filter));
  return tiles;
}

std::string tiles_text(const PartGrid& grid, std::string_view tile) {
  constexpr std::string_view kAround = "<fake_token_around_image>";
  std::string text;
  for (int row = 1; row <= grid.rows; ++row) {
    for (int column = 1; column <= grid.columns; ++column)
      text += fmt::format("{}<row_{}_col_{}>{}", kAround, row, column, tile);
    text += '\n';
  }
  if (grid.rows > 0) text += '\n';
  return text + fmt::format("{}<global-img>{}{}", kAround, tile, kAround);
}

}  // namespace octavo::media
