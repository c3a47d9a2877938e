#include "media/ratio_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace octavo::media {

namespace {

struct Grid {
  int columns;
  int rows;
};

// Selects the grid that enlarges the image least. If all grids shrink it, selects the one that shrinks it
// least.
Grid fitting(std::span<const Grid> grids, int width, int height, int size) {
  Grid best{1, 1};
  double chosen = 0;
  for (const Grid& grid : grids) {
    const double scale = std::min(static_cast<double>(grid.columns * size) / width,
                                  static_cast<double>(grid.rows * size) / height);
    if (chosen < 1 ? scale > chosen : scale >= 1 && scale < chosen) {
      best = grid;
      chosen = scale;
    }
  }
  return best;
}

PartGrid parts_of(const Grid& grid, int size) {
  const bool one = grid.columns * grid.rows == 1;
  return {size * grid.columns, size * grid.rows, one ? 0 : grid.rows, one ? 0 : grid.columns};
}

}  // namespace

// Selects the grid with the nearest aspect ratio. If several grids are equally near, it selects the grid
// with the fewest tiles, or a larger grid if the image has more than half of the larger grid's pixels.
PartGrid ratio_tile_grid(int width, int height, const RatioTileRule& rule) {
  std::vector<Grid> grids;
  for (int columns = 1; columns <= rule.tiles_max; ++columns)
    for (int rows = 1; rows <= rule.tiles_max / columns; ++rows)
      if (columns * rows >= rule.tiles_min) grids.push_back({columns, rows});
  std::ranges::stable_sort(grids, {}, [](const Grid& grid) { return grid.columns * grid.rows; });
  if (rule.fits) return parts_of(fitting(grids, width, height, rule.tile_size), rule.tile_size);
  const double ratio = static_cast<double>(width) / height, pixels = static_cast<double>(width) * height;
  const double tile_pixels = static_cast<double>(rule.tile_size) * rule.tile_size;
  Grid best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (const Grid& grid : grids) {
    const double difference = std::abs(ratio - static_cast<double>(grid.columns) / grid.rows);
    const bool fills = pixels > 0.5 * tile_pixels * grid.columns * grid.rows;
    if (difference < least || (difference == least && fills)) best = grid;
    least = std::min(least, difference);
  }
  return parts_of(best, rule.tile_size);
}

std::vector<Image> cut_ratio_tiles(const Image& image, const PartGrid& grid, const RatioTileRule& rule,
                                   Filter filter) {
  const int size = rule.tile_size;
  std::vector<Image> tiles;
  if (grid.rows > 0) {
    const Image stretched = resize(image, grid.width, grid.height, filter);
    for (int row = 0; row < grid.rows; ++row)
      for (int column = 0; column < grid.columns; ++column)
        tiles.push_back(crop(stretched, column * size, row * size, size));
  }
  tiles.push_back(resize(image, size, size, filter));
  return tiles;
}

}  // namespace octavo::media
