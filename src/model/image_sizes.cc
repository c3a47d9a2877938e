#include "model/image_sizes.h"

#include <variant>

namespace octavo {

Result<> check_image_sizes(const media::ProcessorConfig& config, const ImageInput& input, bool videos) {
  const auto* tiles = std::get_if<media::TileRule>(&config.rule);
  const auto* any = std::get_if<media::AnySizeRule>(&config.rule);
  const auto* ratio = std::get_if<media::RatioTileRule>(&config.rule);
  const auto* square = std::get_if<media::SquareRule>(&config.rule);
  const auto* longest = std::get_if<media::LongestEdgeRule>(&config.rule);
  const auto* pinned = std::get_if<media::PinnedTileRule>(&config.rule);
  const auto* padded = std::get_if<media::PaddedTileRule>(&config.rule);
  const auto* budget = std::get_if<media::TokenBudgetRule>(&config.rule);
  const auto* split = std::get_if<media::SplitTileRule>(&config.rule);
  const auto* search = std::get_if<media::PatchSearchRule>(&config.rule);
  const auto* patches = std::get_if<media::PatchBudgetRule>(&config.rule);
  const auto* canvas = std::get_if<media::CanvasTileRule>(&config.rule);
  const auto* own_size = std::get_if<media::PaddedSizeRule>(&config.rule);
  const int unit = any != nullptr        ? any->unit
                   : split != nullptr    ? split->whole.unit
                   : search != nullptr   ? search->unit
                   : patches != nullptr  ? patches->unit * patches->merge
                   : own_size != nullptr ? own_size->unit
                   : longest != nullptr  ? longest->unit
                   : budget != nullptr   ? budget->unit
                                         : 0;
  if ((input.image_size == 0) != (unit > 0) ||
      input.row_breaks != (longest != nullptr && !config.row_break.empty()) ||
      input.tiled != config.stacked() || input.whole_last != (padded != nullptr))
    return invalid("image_processor_type", "the files of the image processor do not match the model");
  if ((!input.tiled || input.whole_last) && input.image_size % input.unit() != 0)
    return invalid("image_size", "config.json: image_size {} is not a multiple of patch_size {} times {}",
                   input.image_size, input.patch_size, input.merge);
  if (tiles != nullptr && tiles->tile_size != input.image_size)
    return invalid("max_image_size",
                   "the image processor's max_image_size.longest_edge is {}, but config.json has "
                   "vision_config.image_size {}: both must be equal",
                   tiles->tile_size, input.image_size);
  const int size = square != nullptr   ? square->size
                   : ratio != nullptr  ? ratio->tile_size
                   : pinned != nullptr ? pinned->tile_size
                   : padded != nullptr ? padded->tile_size
                   : canvas != nullptr ? canvas->tile_size
                                       : input.image_size;
  if (size != input.image_size)
    return invalid("size",
                   "the image processor's size is {}, but config.json has vision_config.image_size {}: both "
                   "must be equal",
                   size, input.image_size);
  if (budget != nullptr && budget->tokens_max > input.axis_positions / input.merge)
    return invalid(
        "max_soft_tokens",
        "the image processor's max_soft_tokens is {}, but the encoder has only {} positions per row",
        budget->tokens_max, input.axis_positions / input.merge);
  if (padded != nullptr && padded->patch_size != input.patch_size)
    return invalid("patch_size",
                   "the image processor's patch_size is {}, but the encoder's is {}: both must be equal",
                   padded->patch_size, input.patch_size);
  if (unit > 0 && unit != input.unit())
    return invalid(
        "patch_size",
        "the image processor's patch_size times merge_size is {}, but config.json has {}: both must be equal",
        unit, input.unit());
  if (videos && config.video && (config.video->size.unit != unit || config.video->frames != input.frames))
    return invalid("temporal_patch_size",
                   "the video processor's patches have {} x {} pixels in {} frames, but config.json has {} x "
                   "{} in {}: both must be equal",
                   config.video->size.unit / input.merge, config.video->size.unit / input.merge,
                   config.video->frames, input.patch_size, input.patch_size, input.frames);
  return {};
}

}  // namespace octavo
