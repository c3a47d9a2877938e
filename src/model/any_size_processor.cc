#include "model/any_size_processor.h"

#include <optional>
#include <variant>

#include "model/processor_file.h"

namespace octavo {

Result<> read_any_size(const Config& config, media::ProcessorConfig& out) {
  TRY(const int patch, config.integer("patch_size", {1, 1024}, 14));
  TRY(const int merge, config.integer("merge_size", {1, 64}, 2));
  media::AnySizeRule rule{.unit = patch * merge, .pixels_min = 56 * 56, .pixels_max = 28 * 28 * 1280};
  TRY_VOID(read_pixels(config, rule));
  out.rule = rule;
  return {};
}

// An image counts as temporal_patch_size equal frames.
Result<> read_glm_size(const Config& config, media::ProcessorConfig& out) {
  TRY_VOID(read_any_size(config, out));
  auto& rule = std::get<media::AnySizeRule>(out.rule);
  rule.pixels_min = 112 * 112;
  rule.pixels_max = 28 * 28 * 15000;
  rule.growth = media::AnySizeRule::Growth::both;
  TRY(rule.weight, config.integer("temporal_patch_size", {1, 64}, 2));
  rule.rounded_weight = rule.weight;
  return read_pixels(config, rule);
}

Result<> read_edge_size(const Config& config, media::ProcessorConfig& out) {
  TRY(const int patch, config.integer("patch_size", {1, 1024}, 16));
  TRY(const int merge, config.integer("merge_size", {1, 64}, 2));
  media::AnySizeRule rule{.unit = patch * merge,
                          .pixels_min = 256 * 256,
                          .pixels_max = 4096 * 4096,
                          .growth = media::AnySizeRule::Growth::both};
  TRY_VOID(read_pixels(config, rule));
  out.rule = rule;
  return {};
}

// MiniMax's file has a list of two numbers as `size`, which its processor does not use.
Result<> read_m3_size(const Config& config, media::ProcessorConfig& out) {
  const Config own = config.is_list("size") ? config.without("size") : config;
  TRY_VOID(read_any_size(own, out));
  auto& rule = std::get<media::AnySizeRule>(out.rule);
  rule.pixels_max = 672 * 672;
  return read_pixels(own, rule);
}

Result<> read_paddle_size(const Config& config, media::ProcessorConfig& out) {
  TRY_VOID(read_any_size(config, out));
  auto& rule = std::get<media::AnySizeRule>(out.rule);
  rule.pixels_min = 384 * 384;
  rule.pixels_max = 1536 * 1536;
  rule.growth = media::AnySizeRule::Growth::in_turn;
  return read_pixels(config, rule);
}

Result<> read_ovis_size(const Config& model, const Config& processor, media::ProcessorConfig& out) {
  TRY(const std::optional<Config> vision, model.object("vit_config"));
  const Config given = vision.value_or(Config());
  TRY(const int patch, given.integer("patch_size", {1, 1024}, 16));
  TRY(const int merge, given.integer("hidden_stride", {1, 64}, 2));
  media::AnySizeRule rule{.unit = patch * merge,
                          .pixels_min = 448 * 448,
                          .pixels_max = 1792 * 1792,
                          .growth = media::AnySizeRule::Growth::in_turn};
  TRY_VOID(read_pixels(processor, rule));
  out.rule = rule;
  out.token = "<|image_pad|>";
  return {};
}

}  // namespace octavo
