#include "media/padded_tiles.h"

#include <algorithm>
#include <cmath>

#include "media/orientation.h"
#include "media/ratio_tiles.h"

namespace octavo::media {

namespace {

// Selects the largest grid that the image's longer side fills. Wide images have width >= height.
PartGrid centred_grid(int width, int height, const PaddedTileRule& rule) {
  if (width < height) {
    const PartGrid wide = centred_grid(height, width, rule);
    return {.width = wide.height, .height = wide.width, .rows = wide.columns, .columns = wide.rows};
  }
  const double ratio = static_cast<double>(width) / height;
  int columns = 1;
  while ((columns + 1) * std::ceil((columns + 1) / ratio) <= rule.tiles_max) ++columns;
  const int across = columns * rule.tile_size, down = static_cast<int>(across / ratio);
  return {.width = across,
          .height = down,
          .rows = (down + rule.tile_size - 1) / rule.tile_size,
          .columns = columns};
}

Result<> check_scaled(int width, int height, const PartGrid& grid) {
  constexpr int kSideMin = 10;
  if (std::min(grid.width, grid.height) >= kSideMin) return {};
  return invalid("",
                 "an image of {} x {} pixels is resized to {} x {}; each side must have at least {} pixels",
                 width, height, grid.width, grid.height, kSideMin);
}

// Scales the image as Phi-3-vision does: an upright image is scaled as its transpose.
Image scaled_centred(const Image& image, const PartGrid& grid) {
  constexpr int kTranspose = 5;  // as in EXIF
  if (image.width >= image.height) return resize(image, grid.width, grid.height, Filter::bilinear);
  return upright(resize(upright(image, kTranspose), grid.height, grid.width, Filter::bilinear), kTranspose);
}

}  // namespace

Result<PartGrid> padded_tile_grid(int width, int height, const PaddedTileRule& rule) {
  if (rule.centred) {
    const PartGrid centred = centred_grid(width, height, rule);
    TRY_VOID(check_scaled(width, height, centred));
    return centred;
  }
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
  TRY_VOID(check_scaled(width, height, grid));
  return grid;
}

Image stack_padded_tiles(const Image& image, const PartGrid& grid, const PaddedTileRule& rule) {
  constexpr std::uint8_t kWhite = 255;
  const int size = rule.tile_size;
  Image frame = plain(grid.columns * size, grid.rows * size, kWhite);
  const int left = rule.centred ? (frame.width - grid.width) / 2 : 0,
            top_rows = rule.centred ? (frame.height - grid.height) / 2 : 0;
  paste(rule.centred    ? scaled_centred(image, grid)
        : rule.as_torch ? resize_as_torch(image, grid.width, grid.height, Filter::bilinear)
                        : resize(image, grid.width, grid.height, Filter::bilinear),
        left, top_rows, frame);
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
    if (rule.centred) return all / rule.patch_size;
    return all / rule.patch_size - (all - pixels) / rule.patch_size;
  };
  return {.rows = seen(grid.rows, grid.height), .columns = seen(grid.columns, grid.width)};
}

}  // namespace octavo::media
