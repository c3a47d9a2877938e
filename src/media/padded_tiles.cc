#include "media/padded_tiles.h"

#include <algorithm>

#include "media/ratio_tiles.h"

namespace octavo::media {

Result<PartGrid> padded_tile_grid(int width, int height, const PaddedTileRule& rule) {
  constexpr int kSideMin = 10;
  const int size = rule.tile_size;
  const auto tiles = [size](int side) { return (side + size - 1) / size; };
  PartGrid grid{.rows = tiles(height), .columns = tiles(width)};
  if (std::int64_t{grid.rows} * grid.columns > rule.tiles_max) {
    grid = ratio_tile_grid(width, height, {.tile_size = size, .tiles_min = 1, .tiles_max = rule.tiles_max});
    grid.rows = std::max(1, grid.rows);
    grid.columns = std::max(1, grid.columns);
  }
  grid.width = grid.columns * size;
  grid.height = grid.rows * size;
  const double across = static_cast<double>(grid.width) / width, down = static_cast<double>(grid.height) / height;
  if (across < down)
    grid.height = static_cast<int>(height * across);
  else
    grid.width = static_cast<int>(width * down);
  if (std::min(grid.width, grid.height) >= kSideMin) return grid;
  return invalid("",
                 "an image of {} x {} pixels is resized to {} x {}; each side must have at least {} pixels",
                 width, height, grid.width, grid.height, kSideMin);
}

Image stack_padded_tiles(const Image& image, const PartGrid& grid, const PaddedTileRule& rule) {
  constexpr std::uint8_t kWhite = 255;
  const int size = rule.tile_size;
  Image frame = plain(grid.columns * size, grid.rows * size, kWhite);
  paste(rule.as_torch ? resize_as_torch(image, grid.width, grid.height, Filter::bilinear)
                      : resize(image, grid.width, grid.height, Filter::bilinear),
        0, 0, frame);
  Image stack = plain(size, size * grid.rows * grid.columns, kWhite);
  int top = 0;
  for (int row = 0; row < grid.rows; ++row)
    for (int column = 0; column < grid.columns; ++column, top += size)
      paste(crop(frame, column * size, row * size, size), 0, top, stack);
  return stack;
}

PatchGrid seen_patches(const PartGrid& grid, const PaddedTileRule& rule) {
  const auto seen = [&](int tiles, int pixels) {
    const int all = tiles * rule.tile_size;
    return all / rule.patch_size - (all - pixels) / rule.patch_size;
  };
  return {.rows = seen(grid.rows, grid.height), .columns = seen(grid.columns, grid.width)};
}

}  // namespace octavo::media
