#include "serve/image_overrides.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "openai/request_fields.h"

namespace octavo {
namespace {

using openai::Fields;

// Reads a number in [least, most] into `out`, if the request has the field.
Result<> read(Fields& f, std::string_view name, std::int64_t least, std::int64_t most, auto& out) {
  std::optional<std::int64_t> given;
  TRY_VOID(f.integer64(name, given));
  if (!given) return {};
  if (*given < least || *given > most)
    return invalid(f.full_name(name), "must be from {} to {}, got {}", least, most, *given);
  out = static_cast<std::remove_reference_t<decltype(out)>>(*given);
  return {};
}

Result<> read_size(Fields& f, const auto& read_fields) {
  TRY(const boost::json::object* size, f.object("size"));
  if (size == nullptr) return {};
  Fields fields(*size, f.full_name("size") + ".");
  TRY_VOID(read_fields(fields));
  for (const std::string& name : fields.unread()) return invalid(name, "is not supported");
  return {};
}

Result<> apply(Fields& f, media::AnySizeRule& rule) {
  const std::int64_t least = std::int64_t{rule.unit} * rule.unit, most = rule.pixels_max;
  const auto read_edges = [&](Fields& size) -> Result<> {
    TRY_VOID(read(size, "shortest_edge", 1, most, rule.pixels_min));
    return read(size, "longest_edge", least, most, rule.pixels_max);
  };
  TRY_VOID(read_size(f, read_edges));
  TRY_VOID(read(f, "min_pixels", 1, most, rule.pixels_min));
  TRY_VOID(read(f, "max_pixels", least, most, rule.pixels_max));
  rule.pixels_min = std::min(rule.pixels_min, rule.pixels_max);
  return {};
}

Result<> apply(Fields& f, media::TileRule& rule) {
  bool split = rule.split;
  TRY_VOID(f.boolean("do_image_splitting", split));
  if (split && !rule.split)
    return invalid(f.full_name("do_image_splitting"),
                   "must be false, because the server does not crop images");
  rule.split = split;
  return read_size(f, [&](Fields& size) {
    return read(size, "longest_edge", rule.tile_size, rule.longest_edge, rule.longest_edge);
  });
}

Result<> apply(Fields& f, media::RatioTileRule& rule) {
  TRY_VOID(read(f, "max_patches", 1, rule.tiles_max, rule.tiles_max));
  rule.tiles_min = std::min(rule.tiles_min, rule.tiles_max);
  return {};
}

Result<> apply(Fields& f, media::SplitTileRule& rule) {
  bool split = true;
  TRY_VOID(f.boolean("do_image_splitting", split));
  TRY_VOID(read(f, "max_tiles", 1, rule.tiles.tiles_max, rule.tiles.tiles_max));
  if (!split) rule.tiles.tiles_max = 1;
  rule.tiles.tiles_min = std::min(rule.tiles.tiles_min, rule.tiles.tiles_max);
  return {};
}

Result<> apply(Fields& f, media::PaddedTileRule& rule) {
  return read(f, rule.centred ? "num_crops" : "dynamic_hd", 1, rule.tiles_max, rule.tiles_max);
}

Result<> apply(Fields& f, media::LongestEdgeRule& rule) {
  return read_size(
      f, [&](Fields& size) { return read(size, "longest_edge", rule.unit, rule.longest, rule.longest); });
}

Result<> apply(Fields& f, media::TokenBudgetRule& rule) {
  return read(f, "max_soft_tokens", 1, rule.tokens_max, rule.tokens_max);
}

Result<> apply(Fields& f, media::VideoRule& rule) {
  double fps = 0;
  int frames = 0;
  TRY_VOID(f.number("fps", fps));
  TRY_VOID(read(f, "num_frames", 1, rule.frames_max, frames));
  if (fps < 0 || fps > 1000)
    return invalid(f.full_name("fps"), "must be above 0 and at most 1000, got {}", fps);
  if (fps > 0 && frames > 0) return invalid(f.full_name("num_frames"), "cannot be combined with fps");
  if (fps == 0 && frames == 0) return {};
  rule.samples = true;
  rule.num_frames = frames;
  if (fps > 0) rule.fps = fps;
  return {};
}

Result<> apply(Fields&, media::SquareRule&) { return {}; }
Result<> apply(Fields&, media::PinnedTileRule&) { return {}; }
Result<> apply(Fields&, media::PatchSearchRule&) { return {}; }
Result<> apply(Fields&, media::PatchBudgetRule&) { return {}; }
Result<> apply(Fields&, media::PaddedSizeRule&) { return {}; }
Result<> apply(Fields&, media::CanvasTileRule&) { return {}; }

}  // namespace

Result<media::ProcessorConfig> with_overrides(media::ProcessorConfig config,
                                              const boost::json::object& overrides) {
  Fields f(overrides, "mm_processor_kwargs.");
  TRY_VOID(std::visit([&](auto& rule) { return apply(f, rule); }, config.rule));
  if (config.video) TRY_VOID(apply(f, *config.video));
  for (const std::string& name : f.unread()) return invalid(name, "is not supported for this model's images");
  return config;
}

}  // namespace octavo
