#include "model/split_tile_processor.h"

#include <algorithm>

#include "model/processor_file.h"

namespace octavo {

Result<> read_split_tiles(const Config& config, media::ProcessorConfig& out) {
  media::SplitTileRule rule;
  TRY(rule.patch_size, config.integer("encoder_patch_size", {1, 1024}, 16));
  TRY(const int factor, config.integer("downsample_factor", {1, 64}, 2));
  rule.whole.unit = rule.patch_size * factor;
  rule.whole.growth = media::AnySizeRule::Growth::rounded;
  const std::int64_t token = std::int64_t{rule.whole.unit} * rule.whole.unit;
  const Config::Range range{1, std::max<std::int64_t>(1, kPixelsMax / token)};
  TRY(const int least, config.integer("min_image_tokens", range, 64));
  TRY(const int most, config.integer("max_image_tokens", range, 256));
  rule.whole.pixels_min = least * token;
  rule.whole.pixels_max = most * token;
  TRY(rule.tiles.tile_size, config.integer("tile_size", {1, 1 << 16}, 512));
  if (rule.tiles.tile_size % rule.whole.unit != 0)
    return invalid("tile_size",
                   "{} is {}, but must be a multiple of encoder_patch_size {} times downsample_factor {}",
                   config.where("tile_size"), rule.tiles.tile_size, rule.patch_size, factor);
  TRY(rule.tolerance, config.number("max_pixels_tolerance", {0, 1e6}, 2));
  TRY(rule.tiles.tiles_min, config.integer("min_tiles", {2, 64}, 2));
  TRY(rule.tiles.tiles_max, config.integer("max_tiles", {rule.tiles.tiles_min, 64}, 10));
  TRY_VOID(refuse_false(config, "use_thumbnail"));
  TRY(const bool splits, config.boolean("do_image_splitting", true));
  if (!splits) rule.tiles.tiles_max = 1;
  out.rule = rule;
  return {};
}

}  // namespace octavo
