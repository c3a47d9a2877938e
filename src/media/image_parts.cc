#include "media/image_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "media/any_size.h"
#include "media/canvas_tiles.h"
#include "media/longest_edge.h"
#include "media/padded_size.h"
#include "media/padded_tiles.h"
#include "media/patch_budget.h"
#include "media/patch_search.h"
#include "media/pinned_tiles.h"
#include "media/ratio_tiles.h"
#include "media/split_tiles.h"
#include "media/square.h"
#include "media/tiles.h"
#include "media/token_budget.h"

namespace octavo::media {

Result<> check_ratio(int width, int height) {
  constexpr int kMost = 200;
  if (std::max(width, height) <= std::int64_t{kMost} * std::min(width, height)) return {};
  return invalid("", "the image has {} x {} pixels, but one side may be at most {} times the other", width,
                 height, kMost);
}

Result<PartGrid> part_grid(int width, int height, const ProcessorConfig& config) {
  if (const auto* tiles = std::get_if<TileRule>(&config.rule)) return tile_grid(width, height, *tiles);
  if (const auto* tiles = std::get_if<RatioTileRule>(&config.rule))
    return ratio_tile_grid(width, height, *tiles);
  if (const auto* square = std::get_if<SquareRule>(&config.rule)) return square_grid(width, height, *square);
  if (const auto* longest = std::get_if<LongestEdgeRule>(&config.rule))
    return longest_edge_grid(width, height, *longest);
  if (const auto* tiles = std::get_if<PinnedTileRule>(&config.rule))
    return pinned_tile_grid(width, height, *tiles);
  if (const auto* tiles = std::get_if<PaddedTileRule>(&config.rule))
    return padded_tile_grid(width, height, *tiles);
  if (const auto* split = std::get_if<SplitTileRule>(&config.rule))
    return split_tile_grid(width, height, *split);
  if (const auto* budget = std::get_if<TokenBudgetRule>(&config.rule))
    return token_budget_grid(width, height, *budget);
  if (const auto* search = std::get_if<PatchSearchRule>(&config.rule))
    return patch_search_grid(width, height, *search);
  if (const auto* budget = std::get_if<PatchBudgetRule>(&config.rule))
    return patch_budget_grid(width, height, *budget);
  if (const auto* padded = std::get_if<PaddedSizeRule>(&config.rule))
    return padded_size_grid(width, height, *padded);
  if (const auto* canvas = std::get_if<CanvasTileRule>(&config.rule))
    return canvas_tile_grid(width, height, *canvas);
  return any_size_grid(width, height, std::get<AnySizeRule>(config.rule));
}

std::vector<Image> cut_parts(Image image, const PartGrid& grid, const ProcessorConfig& config) {
  if (const auto* tiles = std::get_if<TileRule>(&config.rule))
    return cut_tiles(std::move(image), grid, *tiles, config.filter);
  if (const auto* tiles = std::get_if<RatioTileRule>(&config.rule))
    return cut_ratio_tiles(image, grid, *tiles, config.filter);
  if (const auto* square = std::get_if<SquareRule>(&config.rule))
    return {cut_square(image, *square, config.filter)};
  if (const auto* tiles = std::get_if<PinnedTileRule>(&config.rule))
    return {stack_pinned_tiles(image, grid, *tiles, config.filter)};
  if (const auto* tiles = std::get_if<PaddedTileRule>(&config.rule)) return {stack_padded_tiles(image, grid, *tiles)};
  if (const auto* split = std::get_if<SplitTileRule>(&config.rule))
    return cut_split_tiles(image, grid, *split, config.filter);
  if (const auto* padded = std::get_if<PaddedSizeRule>(&config.rule))
    return {pad_image(image, grid, *padded, config.filter)};
  if (const auto* canvas = std::get_if<CanvasTileRule>(&config.rule))
    return cut_canvas_tiles(image, grid, *canvas, config.filter);
  return {resize(image, grid.width, grid.height, config.filter)};
}

std::string parts_text(const PartGrid& grid, const ProcessorConfig& config, int tokens_per_part) {
  const auto tokens = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += config.token;
    return text;
  };
  if (std::holds_alternative<TileRule>(config.rule)) return tiles_text(grid, tokens(tokens_per_part));
  if (const auto* split = std::get_if<SplitTileRule>(&config.rule))
    return split_tiles_text(grid, *split, config.token);
  if (std::holds_alternative<CanvasTileRule>(config.rule))
    return canvas_tiles_text(grid, tokens(tokens_per_part));
  if (const auto* rule = std::get_if<LongestEdgeRule>(&config.rule)) {
    const std::string row = tokens(grid.width / rule->unit);
    std::string all = config.before + row;
    for (int top = rule->unit; top < grid.height; top += rule->unit) all += config.row_break + row;
    return all + config.after;
  }
  if (const auto* rule = std::get_if<RatioTileRule>(&config.rule)) {
    std::string all = config.before;
    for (int i = 1; i <= grid.parts(); ++i) {
      if (rule->numbered) all += i < grid.parts() ? fmt::format("<tile_{}>", i) : "<tile_global_thumbnail>";
      all += tokens(tokens_per_part) + config.row_break;
    }
    return all + config.after;
  }
  return config.before + tokens((config.stacked() ? 1 : grid.parts()) * tokens_per_part) + config.after;
}

}  // namespace octavo::media
