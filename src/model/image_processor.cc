#include "model/image_processor.h"

#include "model/processor_file.h"

namespace octavo {
namespace {

constexpr Config::Range kEdge{1, 1 << 16};

Result<Config> read_config(const std::string& directory, const boost::json::object& overrides) {
  for (const auto& [name, value] : overrides)
    if (name != "size" && name != "do_image_splitting")
      return field_failure(
          "mm_processor_kwargs", ErrorCode::unsupported,
          "mm_processor_kwargs: {} cannot be changed; supported are size and do_image_splitting",
          std::string_view(name));
  return read_processor_file(directory, "image_processor", overrides);
}

Result<int> longest_edge(const Config& config, std::string_view field, int fallback) {
  TRY(const std::optional<Config> size, config.object(field));
  if (!size) return fallback;
  return size->integer("longest_edge", kEdge);
}

Result<media::Filter> filter_of(const Config& config) {
  TRY(const int number, config.integer("resample", {0, 5}, 1));  // as Pillow numbers them
  switch (number) {
    case 1:
      return media::Filter::lanczos;
    case 2:
      return media::Filter::bilinear;
    case 3:
      return media::Filter::bicubic;
    default:
      return field_failure("resample", ErrorCode::unsupported,
                           "{} is {}; supported are 1 (lanczos), 2 (bilinear) and 3 (bicubic)",
                           config.where("resample"), number);
  }
}

Result<std::array<float, 3>> channels(const Config& config, std::string_view field, Config::RealRange range) {
  std::array<float, 3> values{0.5F, 0.5F, 0.5F};
  if (!config.has(field)) return values;
  TRY(const std::vector<double> given, config.numbers(field, 3, range));
  for (std::size_t i = 0; i < 3; ++i) values[i] = static_cast<float>(given[i]);
  return values;
}

}  // namespace

Result<media::ProcessorConfig> read_image_processor(const std::string& directory,
                                                    const boost::json::object& overrides) {
  TRY(const Config config, read_config(directory, overrides));
  TRY(const std::string kind, config.text("image_processor_type", ""));
  if (!kind.starts_with("Idefics3ImageProcessor") && !kind.starts_with("SmolVLMImageProcessor"))
    return field_failure("image_processor_type", ErrorCode::unsupported,
                         "{} is \"{}\"; supported are Idefics3ImageProcessor and SmolVLMImageProcessor",
                         config.where("image_processor_type"), kind);
  for (const std::string_view step : {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"}) {
    TRY(const bool done, config.boolean(step, true));
    if (!done)
      return field_failure(step, ErrorCode::unsupported, "{} is false; it must be true", config.where(step));
  }
  media::ProcessorConfig out;
  TRY(out.tile_size, longest_edge(config, "max_image_size", 364));
  TRY(out.longest_edge, longest_edge(config, "size", 4 * 364));
  TRY(out.split, config.boolean("do_image_splitting", true));
  TRY(out.filter, filter_of(config));
  TRY(const double scale, config.number("rescale_factor", {1e-6, 1}, 1.0 / 255));
  out.scale = static_cast<float>(scale);
  TRY(out.mean, channels(config, "image_mean", {-1e3, 1e3}));
  TRY(out.std, channels(config, "image_std", {1e-6, 1e3}));
  return out;
}

}  // namespace octavo
