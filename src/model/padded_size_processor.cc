#include "model/padded_size_processor.h"

#include <algorithm>

#include "model/processor_file.h"

namespace octavo {

Result<> read_padded_size(const Config& file, media::ProcessorConfig& out) {
  TRY(const std::optional<Config> published, file.object("media_proc_cfg"));
  const Config config = published.value_or(file).with_names(
      {{"max_patches", "in_patch_limit"}, {"merge_size", "merge_kernel_size"}});
  media::PaddedSizeRule rule;
  TRY(rule.patch_size, config.integer("patch_size", {1, 1024}, 14));
  const Config::Range range{1, std::max<std::int64_t>(1, kPixelsMax / rule.patch_size / rule.patch_size)};
  int merge = 2;
  if (config.is_list("merge_size")) {
    TRY(const std::vector<int> sides, config.integers("merge_size", {1, 64}));
    if (sides.size() != 2 || sides[0] != sides[1])
      return invalid("merge_size", "{} must be two equal numbers", config.where("merge_size"));
    merge = sides[0];
  } else {
    TRY(merge, config.integer("merge_size", {1, 64}, 2));
  }
  const bool first = config.has("in_token_limit");
  if (first) TRY_VOID(refuse_false(config, "pad_input"));
  TRY(rule.patches_max, config.integer(first ? "in_token_limit" : "max_patches", range, 16384));
  TRY(rule.side_max, config.integer("patch_limit_on_one_side", {1, 1 << 16}, 512));
  rule.unit = rule.patch_size * merge;
  out.rule = rule;
  if (!published) return {};
  TRY(out.mean, read_channels(config, "image_mean", {-1e3, 1e3}, out.mean));
  TRY(out.std, read_channels(config, "image_std", {1e-6, 1e3}, out.std));
  return {};
}

}  // namespace octavo
