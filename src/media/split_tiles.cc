#include "media/split_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "media/any_size.h"
#include "media/ratio_tiles.h"

namespace octavo::media {

namespace {

std::int64_t tokens_of(int width, int height, const SplitTileRule& rule) {
  return std::int64_t{width / rule.whole.unit} * (height / rule.whole.unit);
}

// Returns whether the image, rounded to tokens, has more pixels than one part may have.
bool is_large(int width, int height, const SplitTileRule& rule) {
  const double unit = rule.whole.unit;
  const auto rounded = [&](int side) {
    return std::max<double>(rule.patch_size, std::nearbyint(side / unit) * unit);
  };
  return rounded(width) * rounded(height) > static_cast<double>(rule.whole.pixels_max) * rule.tolerance;
}

}  // namespace

Result<PartGrid> split_tile_grid(int width, int height, const SplitTileRule& rule) {
  TRY(PartGrid grid, any_size_grid(width, height, rule.whole));
  if (rule.tiles.tiles_max > 1 && is_large(width, height, rule)) {
    const PartGrid tiles = ratio_tile_grid(width, height, rule.tiles);
    grid.rows = tiles.rows;
    grid.columns = tiles.columns;
  }
  return grid;
}

std::vector<Image> cut_split_tiles(const Image& image, const PartGrid& grid, const SplitTileRule& rule,
                                   Filter filter) {
  const int size = rule.tiles.tile_size;
  std::vector<Image> parts;
  if (grid.rows > 0) {
    const Image stretched = resize_as_torch(image, grid.columns * size, grid.rows * size, filter);
    for (int row = 0; row < grid.rows; ++row)
      for (int column = 0; column < grid.columns; ++column)
        parts.push_back(crop(stretched, column * size, row * size, size));
  }
  parts.push_back(resize_as_torch(image, grid.width, grid.height, filter));
  return parts;
}

std::int64_t split_tile_tokens(const PartGrid& grid, const SplitTileRule& rule) {
  const int size = rule.tiles.tile_size;
  return std::int64_t{grid.rows} * grid.columns * tokens_of(size, size, rule) +
         tokens_of(grid.width, grid.height, rule);
}

std::string split_tiles_text(const PartGrid& grid, const SplitTileRule& rule, std::string_view token) {
  std::string text = "<|image_start|>";
  const auto add = [&](int width, int height) {
    for (std::int64_t i = 0; i < tokens_of(width, height, rule); ++i) text += token;
  };
  for (int row = 1; row <= grid.rows; ++row)
    for (int column = 1; column <= grid.columns; ++column) {
      text += fmt::format("<|img_row_{}_col_{}|>", row, column);
      add(rule.tiles.tile_size, rule.tiles.tile_size);
    }
  if (grid.rows > 0) text += "<|img_thumbnail|>";
  add(grid.width, grid.height);
  return text + "<|image_end|>";
}

}  // namespace octavo::media
