#include "model/pinned_tile_processor.h"

#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "model/processor_file.h"

namespace octavo {
namespace {

// Reads `size`, {"shortest_edge"} or {"height", "width"}. If crop_size exists, it must be equal. The grids
// are sizes [height, width] in pixels.
Result<> read_pinned_tiles(const Config& config, media::ProcessorConfig& out, int absent_size,
                           std::span<const media::PinnedTileRule::Grid> absent) {
  constexpr std::int64_t kTilesMax = 256;
  media::PinnedTileRule rule{.tile_size = absent_size, .grids = {absent.begin(), absent.end()}};
  TRY(const std::optional<Config> size, config.object("size"));
  if (size && size->has("shortest_edge")) {
    TRY(rule.tile_size, size->integer("shortest_edge", kEdge));
  } else {
    TRY(rule.tile_size, square_size(config, absent_size));
  }
  TRY(const std::optional<Config> cut, config.object("crop_size"));
  for (const char* side : {"height", "width"})
    if (cut) TRY_VOID(cut->integer(side, {rule.tile_size, rule.tile_size}));
  using Sizes = std::vector<std::array<int, 2>>;
  TRY(const Sizes pinned, config.pairs("image_grid_pinpoints", kEdge));
  if (!pinned.empty()) rule.grids.clear();
  for (const auto& [height, width] : pinned) {
    const media::PinnedTileRule::Grid grid{height / rule.tile_size, width / rule.tile_size};
    if (height % rule.tile_size != 0 || width % rule.tile_size != 0 ||
        std::int64_t{grid.rows} * grid.columns > kTilesMax)
      return invalid("image_grid_pinpoints",
                     "{} has [{}, {}], but both must be multiples of {} and have at most {} tiles",
                     config.where("image_grid_pinpoints"), height, width, rule.tile_size, kTilesMax);
    rule.grids.push_back(grid);
  }
  out.rule = std::move(rule);
  return {};
}

// Reads the maximum number of tiles, such as 9 in "anyres_max_9". If an image has more tiles, their tokens
// are interpolated.
Result<int> read_tiles_most(const Config& config) {
  constexpr std::string_view kBegin = "anyres_max_";
  TRY(const std::string ratio, config.text("vision_aspect_ratio", "anyres_max_9"));
  int most = 0;
  const char* const end = ratio.data() + ratio.size();
  const bool read = ratio.starts_with(kBegin) &&
                    std::from_chars(ratio.data() + kBegin.size(), end, most).ptr == end && most > 0;
  if (read && most <= 1024) return most;
  return field_failure("vision_aspect_ratio", ErrorCode::unsupported,
                       "{} is \"{}\", which is not supported: must be anyres_max_1 to anyres_max_1024",
                       config.where("vision_aspect_ratio"), ratio);
}

}  // namespace

Result<> read_next_tiles(const Config& config, media::ProcessorConfig& out) {
  constexpr media::PinnedTileRule::Grid kGrids[] = {{1, 2}, {2, 1}, {2, 2}, {3, 1}, {1, 3}};
  return read_pinned_tiles(config, out, 224, kGrids);
}

Result<> read_onevision_tiles(const Config& config, media::ProcessorConfig& out) {
  std::vector<media::PinnedTileRule::Grid> grids;
  for (int rows = 1; rows <= 6; ++rows)
    for (int columns = 1; columns <= 6; ++columns) grids.push_back({rows, columns});
  TRY_VOID(read_pinned_tiles(config, out, 384, grids));
  TRY(std::get<media::PinnedTileRule>(out.rule).tiles_most, read_tiles_most(config));
  return {};
}

}  // namespace octavo
