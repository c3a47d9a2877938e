#include "model/video_processor.h"

#include <filesystem>

#include "model/processor_file.h"

namespace octavo {
namespace {

struct Found {
  Config config;
  std::string type;
};

// Returns the type of processor if the file does not name it. `processor_class` identifies Qwen3-VL.
std::string processor_type(const Config& images) {
  const auto whole = images.text("processor_class", "");
  return whole && whole->starts_with("Qwen3") ? "Qwen3VLVideoProcessor" : "Qwen2VLVideoProcessor";
}

Result<Found> find(const std::string& directory, const Config& images) {
  TRY(std::optional<Config> own, read_video_file(directory));
  if (!own) {
    TRY(own, images.object("video_processor"));
  }
  if (!own) return Found{images, processor_type(images)};
  TRY(std::string type, own->text("video_processor_type", processor_type(*own)));
  return Found{*std::move(own), std::move(type)};
}

Result<> read_sampling(const Config& config, media::VideoRule& rule) {
  const Config::Range frames{1, 1 << 12};
  TRY(rule.samples, config.boolean("do_sample_frames", rule.samples));
  TRY(rule.num_frames, config.integer("num_frames", {0, 1 << 12}, 0));
  TRY(rule.fps, config.number("fps", {1e-3, 1e3}, rule.fps));
  TRY(rule.frames_min, config.integer("min_frames", frames, rule.frames_min));
  TRY(rule.frames_max, config.integer("max_frames", frames, rule.frames_max));
  if (rule.frames_min > rule.frames_max || rule.frames_max < rule.frames)
    return invalid("max_frames",
                   "{} is {}, but must be at least min_frames ({}) and at least temporal_patch_size ({})",
                   config.where("max_frames"), rule.frames_max, rule.frames_min, rule.frames);
  return {};
}

Result<> check_channels(const Config& config, std::string_view field, const std::array<float, 3>& images) {
  if (!config.has(field)) return {};
  TRY(const std::vector<double> values, config.numbers(field, 3, {-1e3, 1e3}));
  for (std::size_t i = 0; i < 3; ++i)
    if (static_cast<float>(values[i]) != images[i])
      return field_failure(field, ErrorCode::unsupported, "{} must be equal to that of images",
                           config.where(field));
  return {};
}

}  // namespace

Result<media::VideoRule> read_video_processor(const std::string& directory, const Config& images,
                                              const media::ProcessorConfig& image_config) {
  TRY(const Found found, find(directory, images));
  const Config& config = found.config;
  media::VideoRule rule;
  rule.stamped = found.type.starts_with("Qwen3VLVideoProcessor");
  if (!rule.stamped && !found.type.starts_with("Qwen2VLVideoProcessor"))
    return field_failure(
        "video_processor_type", ErrorCode::unsupported,
        "{} is \"{}\", which is not supported: must be Qwen2VLVideoProcessor or Qwen3VLVideoProcessor",
        config.where("video_processor_type"), found.type);
  rule.samples = rule.stamped;
  TRY(const int patch, config.integer("patch_size", {1, 1024}, rule.stamped ? 16 : 14));
  TRY(const int merge, config.integer("merge_size", {1, 64}, 2));
  TRY(rule.frames, config.integer("temporal_patch_size", {1, 64}, rule.frames));
  const int unit = rule.stamped ? 32 : 28;  // unit of the published models, for the default limits
  rule.size = {.unit = patch * merge, .pixels_min = 128 * unit * unit, .pixels_max = 768 * unit * unit};
  TRY_VOID(read_pixels(config, rule.size));
  TRY_VOID(read_sampling(config, rule));
  TRY_VOID(check_channels(config, "image_mean", image_config.mean));
  TRY_VOID(check_channels(config, "image_std", image_config.std));
  return rule;
}

}  // namespace octavo
