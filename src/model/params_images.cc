#include "model/params_images.h"

namespace octavo {

Result<media::ProcessorConfig> read_own_images(const Config& config, const boost::json::object& overrides) {
  constexpr Config::Range kSide{1, 1 << 16};
  if (!overrides.empty())
    return field_failure("mm_processor_kwargs", ErrorCode::unsupported,
                         "the image settings of this model cannot be changed: remove mm_processor_kwargs");
  TRY(const std::optional<Config> vision, config.object("vision_encoder"));
  const Config given = vision.value_or(Config());
  media::LongestEdgeRule rule;
  TRY(rule.longest, given.integer("image_size", kSide, 1024));
  TRY(rule.longest, given.integer("max_image_size", kSide, rule.longest));
  TRY(const int patch, given.integer("patch_size", {1, 1024}, 16));
  TRY(const int merge, given.integer("spatial_merge_size", {1, 64}, 1));
  rule.unit = patch * merge;
  return media::ProcessorConfig{.rule = rule,
                                .filter = media::Filter::bicubic,
                                .mean = {0.48145466F, 0.4578275F, 0.40821073F},
                                .std = {0.26862954F, 0.26130258F, 0.27577711F},
                                .placeholder = "[IMG]",
                                .token = "[IMG]",
                                .after = "[IMG_END]",
                                .row_break = "[IMG_BREAK]"};
}

}  // namespace octavo
