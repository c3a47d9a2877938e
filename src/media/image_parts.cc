#include "media/image_parts.h"

#include <algorithm>
#include <utility>

#include "media/any_size.h"
#include "media/ratio_tiles.h"
#include "media/square.h"
#include "media/tiles.h"

namespace octavo::media {

Result<> check_ratio(int width, int height) {
  constexpr int kMost = 200;
  if (std::max(width, height) <= std::int64_t{kMost} * std::min(width, height)) return {};
  return invalid("", "the image has {} x {} pixels; one side may be {} times the other", width, height,
                 kMost);
}

Result<PartGrid> part_grid(int width, int height, const ProcessorConfig& config) {
  if (const auto* tiles = std::get_if<TileRule>(&config.rule)) return tile_grid(width, height, *tiles);
  if (const auto* tiles = std::get_if<RatioTileRule>(&config.rule))
    return ratio_tile_grid(width, height, *tiles);
  if (const auto* square = std::get_if<SquareRule>(&config.rule)) return square_grid(width, height, *square);
  return any_size_grid(width, height, std::get<AnySizeRule>(config.rule));
}

std::vector<Image> cut_parts(Image image, const PartGrid& grid, const ProcessorConfig& config) {
  if (const auto* tiles = std::get_if<TileRule>(&config.rule))
    return cut_tiles(std::move(image), grid, *tiles, config.filter);
  if (const auto* tiles = std::get_if<RatioTileRule>(&config.rule))
    return cut_ratio_tiles(image, grid, *tiles, config.filter);
  if (const auto* square = std::get_if<SquareRule>(&config.rule))
    return {cut_square(image, *square, config.filter)};
  return {resize(image, grid.width, grid.height, config.filter)};
}

std::string parts_text(const PartGrid& grid, const ProcessorConfig& config, int tokens_per_part) {
  std::string part;
  for (int i = 0; i < tokens_per_part; ++i) part += config.token;
  if (std::holds_alternative<TileRule>(config.rule)) return tiles_text(grid, part);
  std::string all = config.before;
  for (int i = 0; i < grid.parts(); ++i) all += part;
  return all + config.after;
}

}  // namespace octavo::media
