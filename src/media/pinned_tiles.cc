#include "media/pinned_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octavo::media {
namespace {

struct Size {
  std::int64_t width;
  std::int64_t height;
};

// Returns the size of an image that is scaled to fit into `frame` with its aspect ratio.
Size fitted(int width, int height, Size frame) {
  const double across = static_cast<double>(frame.width) / width,
               down = static_cast<double>(frame.height) / height;
  if (across < down)
    return {frame.width, std::min(static_cast<std::int64_t>(std::ceil(height * across)), frame.height)};
  return {std::min(static_cast<std::int64_t>(std::ceil(width * down)), frame.width), frame.height};
}

// Returns the padding in tokens at each end of an axis with `size` tokens, rounded as in transformers.
// `along` is the length of the image's side on this axis. The image's other side has `across` pixels and
// `other` tokens.
int padding(int size, int other, int across, int along) {
  const double scale = static_cast<double>(other) / across;
  const double kept = std::nearbyint(along * scale * 1e7) / 1e7;
  return (size - static_cast<int>(kept)) / 2;
}

}  // namespace

Result<PartGrid> pinned_tile_grid(int width, int height, const PinnedTileRule& rule) {
  TRY_VOID(check_ratio(width, height));
  const std::int64_t pixels = std::int64_t{width} * height;
  std::int64_t most = 0, least_rest = std::numeric_limits<std::int64_t>::max();
  PartGrid best;
  for (const PinnedTileRule::Grid& grid : rule.grids) {
    const Size frame{std::int64_t{grid.columns} * rule.tile_size, std::int64_t{grid.rows} * rule.tile_size};
    const double scale =
        std::min(static_cast<double>(frame.width) / width, static_cast<double>(frame.height) / height);
    const std::int64_t shown = std::min(
        static_cast<std::int64_t>(width * scale) * static_cast<std::int64_t>(height * scale), pixels);
    const std::int64_t rest = frame.width * frame.height - shown;
    if (shown < most || (shown == most && rest >= least_rest)) continue;
    most = shown;
    least_rest = rest;
    const Size size = fitted(width, height, frame);
    best = {static_cast<int>(size.width), static_cast<int>(size.height), grid.rows, grid.columns};
  }
  if (most == 0)
    return invalid("", "an image of {} x {} pixels is too long and narrow for the model's tiles", width,
                   height);
  return best;
}

Image stack_pinned_tiles(const Image& image, const PartGrid& grid, const PinnedTileRule& rule,
                         Filter filter) {
  constexpr std::uint8_t kBlack = 0;
  const int size = rule.tile_size;
  Image frame = plain(grid.columns * size, grid.rows * size, kBlack);
  paste(resize(image, grid.width, grid.height, filter), (frame.width - grid.width) / 2,
        (frame.height - grid.height) / 2, frame);
  Image stack = plain(size, size * (1 + grid.rows * grid.columns), kBlack);
  paste(resize(image, size, size, filter), 0, 0, stack);
  int top = size;
  for (int row = 0; row < grid.rows; ++row)
    for (int column = 0; column < grid.columns; ++column, top += size)
      paste(crop(frame, column * size, row * size, size), 0, top, stack);
  return stack;
}

TokenGrid token_grid(int width, int height, const PartGrid& grid, int side, int tiles_most) {
  TokenGrid kept{.rows = grid.rows * side, .columns = grid.columns * side};
  if (static_cast<double>(width) / height > static_cast<double>(kept.columns) / kept.rows) {
    kept.top = padding(kept.rows, kept.columns, width, height);
    kept.rows -= 2 * kept.top;
  } else {
    kept.left = padding(kept.columns, kept.rows, height, width);
    kept.columns -= 2 * kept.left;
  }
  kept.out_rows = kept.rows;
  kept.out_columns = kept.columns;
  if (tiles_most == 0) return kept;
  const double ratio = std::sqrt(static_cast<double>(std::int64_t{kept.rows} * kept.columns) /
                                 static_cast<double>(std::int64_t{tiles_most} * side * side));
  if (ratio <= 1.1) return kept;
  kept.out_rows = static_cast<int>(std::floor(kept.rows / ratio));
  kept.out_columns = static_cast<int>(std::floor(kept.columns / ratio));
  return kept;
}

}  // namespace octavo::media
