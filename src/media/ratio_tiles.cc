#include "media/ratio_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

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

// Selects the grid with the largest product: the closeness of its aspect ratio to the image's, times the
// share of the image's pixels that it has, which counts up to 0.6.
Grid covering(std::span<const Grid> grids, int width, int height, int size) {
  const double ratio = static_cast<double>(width) / height, pixels = static_cast<double>(width) * height;
  Grid best{1, 1};
  double most = -1;
  for (const Grid& grid : grids) {
    const double own = static_cast<double>(grid.columns) / grid.rows,
                 share = static_cast<double>(grid.columns) * grid.rows * size * size / pixels;
    const double product = std::min(share, 0.6) * std::min(own / ratio, ratio / own);
    if (product > most) best = grid;
    most = std::max(most, product);
  }
  return best;
}

// Selects the grid with the nearest aspect ratio. If several grids are equally near, it selects the grid
// with the fewest tiles, or a larger grid if the image has more than half of the larger grid's pixels.
Grid nearest(std::span<const Grid> grids, int width, int height, int size) {
  const double ratio = static_cast<double>(width) / height, pixels = static_cast<double>(width) * height;
  const double tile_pixels = static_cast<double>(size) * size;
  Grid best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (const Grid& grid : grids) {
    const double difference = std::abs(ratio - static_cast<double>(grid.columns) / grid.rows);
    const bool fills = pixels > 0.5 * tile_pixels * grid.columns * grid.rows;
    if (difference < least || (difference == least && fills)) best = grid;
    least = std::min(least, difference);
  }
  return best;
}

// Returns all grids with these numbers of tiles, those with the fewest tiles first.
std::vector<Grid> grids_of(int tiles_min, int tiles_max) {
  std::vector<Grid> grids;
  for (int columns = 1; columns <= tiles_max; ++columns)
    for (int rows = 1; rows <= tiles_max / columns; ++rows)
      if (columns * rows >= tiles_min) grids.push_back({columns, rows});
  std::ranges::stable_sort(grids, {}, [](const Grid& grid) { return grid.columns * grid.rows; });
  return grids;
}

PartGrid parts_of(const Grid& grid, int size) {
  const bool one = grid.columns * grid.rows == 1;
  return {size * grid.columns, size * grid.rows, one ? 0 : grid.rows, one ? 0 : grid.columns};
}

// Returns the second grid, with the first one after it.
PartGrid both_of(const Grid& first, int width, int height, const RatioTileRule& rule) {
  std::vector<Grid> others = grids_of(3, rule.tiles_max);
  std::erase_if(others, [&](const Grid& grid) {
    return first.columns % grid.columns == 0 || first.rows % grid.rows == 0;
  });
  PartGrid both = parts_of(nearest(others, width, height, rule.tile_size), rule.tile_size);
  const PartGrid one = parts_of(first, rule.tile_size);
  both.more_rows = one.rows;
  both.more_columns = one.columns;
  return both;
}

std::vector<Image> tiles_in(const Image& image, int rows, int columns, int size, Filter filter) {
  std::vector<Image> tiles;
  if (rows == 0) return tiles;
  const Image stretched = resize(image, columns * size, rows * size, filter);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      tiles.push_back(crop(stretched, column * size, row * size, size));
  return tiles;
}

}  // namespace

PartGrid ratio_tile_grid(int width, int height, const RatioTileRule& rule) {
  const std::vector<Grid> grids = grids_of(rule.twice ? 1 : rule.tiles_min, rule.tiles_max);
  const bool area = rule.choice == RatioTileRule::Choice::area;
  const auto choose = rule.fits ? fitting : area ? covering : nearest;
  const Grid grid = choose(grids, width, height, rule.tile_size);
  return rule.twice ? both_of(grid, width, height, rule) : parts_of(grid, rule.tile_size);
}

std::vector<Image> cut_ratio_tiles(const Image& image, const PartGrid& grid, const RatioTileRule& rule,
                                   Filter filter) {
  std::vector<Image> tiles = tiles_in(image, grid.rows, grid.columns, rule.tile_size, filter);
  for (Image& more : tiles_in(image, grid.more_rows, grid.more_columns, rule.tile_size, filter))
    tiles.push_back(std::move(more));
  tiles.push_back(resize(image, rule.tile_size, rule.tile_size, filter));
  return tiles;
}

}  // namespace octavo::media
