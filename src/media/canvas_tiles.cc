#include "media/canvas_tiles.h"

#include <algorithm>

#include "media/ratio_tiles.h"

namespace octavo::media {

// Images do not grow, except to the size of one tile.
PartGrid canvas_tile_grid(int width, int height, const CanvasTileRule& rule) {
  const int size = rule.tile_size;
  PartGrid grid = ratio_tile_grid(
      width, height, {.tile_size = size, .tiles_min = 1, .tiles_max = rule.tiles_max, .fits = true});
  const int across = std::min(std::max(width, size), grid.width),
            down = std::min(std::max(height, size), grid.height);
  const double wider = static_cast<double>(across) / width, higher = static_cast<double>(down) / height;
  const bool wide = wider < higher;
  grid.width = wide ? across : std::min(static_cast<int>(width * higher), across);
  grid.height = wide ? std::min(static_cast<int>(height * wider), down) : down;
  grid.width = std::max(1, grid.width);
  grid.height = std::max(1, grid.height);
  return grid;
}

std::vector<Image> cut_canvas_tiles(const Image& image, const PartGrid& grid, const CanvasTileRule& rule,
                                    Filter filter) {
  const int size = rule.tile_size, rows = std::max(1, grid.rows), columns = std::max(1, grid.columns);
  Image canvas = plain(columns * size, rows * size, 0);
  paste(resize(image, grid.width, grid.height, filter), 0, 0, canvas);
  std::vector<Image> tiles;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      tiles.push_back(crop(canvas, column * size, row * size, size));
  if (grid.rows > 0) tiles.push_back(resize(image, size, size, filter));
  return tiles;
}

std::string canvas_tiles_text(const PartGrid& grid, std::string_view tile) {
  std::string text = "<|image_start|>";
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      if (column > 0) text += "<|tile_x_separator|>";
      text += tile;
    }
    text += "<|tile_y_separator|>";
  }
  text += "<|image|>";
  text += tile;
  return text + "<|image_end|>";
}

}  // namespace octavo::media
