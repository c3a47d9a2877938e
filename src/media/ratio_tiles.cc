#include "media/ratio_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octavo::media {

// Selects the grid with the nearest aspect ratio. If several grids are equally near, it selects the one with
// the fewest tiles, or a larger one if the image has more than half of the larger grid's pixels.
PartGrid ratio_tile_grid(int width, int height, const RatioTileRule& rule) {
  struct Grid {
    int columns;
    int rows;
  };
  std::vector<Grid> grids;
  for (int columns = 1; columns <= rule.tiles_max; ++columns)
    for (int rows = 1; rows <= rule.tiles_max / columns; ++rows)
      if (columns * rows >= rule.tiles_min) grids.push_back({columns, rows});
  std::ranges::stable_sort(grids, {}, [](const Grid& grid) { return grid.columns * grid.rows; });
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
  const bool one = best.columns * best.rows == 1;
  return {rule.tile_size * best.columns, rule.tile_size * best.rows, one ? 0 : best.rows,
          one ? 0 : best.columns};
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
