#include "model/processor_file.h"

#include <filesystem>

#include "weights/json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

Result<boost::json::object> read_file(const fs::path& file) {
  TRY(boost::json::value tree, read_json_file(file));
  if (!tree.is_object())
    return failure(ErrorCode::corrupt, "{}: the file must contain an object", file.string());
  return std::move(tree.get_object());
}

}  // namespace

Result<Config> read_processor_file(const std::string& directory, std::string_view part,
                                   const boost::json::object& overrides) {
  const fs::path root = directory;
  std::error_code ignored;
  fs::path file = root / "preprocessor_config.json";
  const fs::path outer_file = root / "processor_config.json";
  boost::json::object fields, outer;
  if (fs::exists(outer_file, ignored)) {
    TRY(outer, read_file(outer_file));
  }
  if (fs::exists(file, ignored)) {
    TRY(fields, read_file(file));
  } else {
    file = outer_file;
    if (!fs::exists(file, ignored))
      return failure(ErrorCode::not_found,
                     "{} contains neither preprocessor_config.json nor processor_config.json", root.string());
    if (const auto* nested = outer.if_contains(part); nested && nested->is_object())
      fields = nested->get_object();
  }
  for (const char* of_processor : {"spatial_merge_size", "vision_aspect_ratio"})
    if (const auto* value = outer.if_contains(of_processor)) fields[of_processor] = *value;
  for (const auto& [name, value] : overrides) fields[name] = value;
  return Config::of(std::move(fields), file.filename().string(), {});
}

Result<std::optional<Config>> read_video_file(const std::string& directory) {
  const fs::path own = fs::path(directory) / "video_preprocessor_config.json",
                 outer = fs::path(directory) / "processor_config.json";
  std::error_code ignored;
  if (fs::exists(own, ignored)) {
    TRY(boost::json::object fields, read_file(own));
    return Config::of(std::move(fields), own.filename().string(), {});
  }
  if (!fs::exists(outer, ignored)) return std::nullopt;
  TRY(const boost::json::object all, read_file(outer));
  const auto* nested = all.if_contains("video_processor");
  if (nested == nullptr || !nested->is_object()) return std::nullopt;
  return Config::of(nested->get_object(), outer.filename().string(), {});
}

Result<> read_pixels(const Config& config, media::AnySizeRule& rule) {
  const Config::Range range{1, kPixelsMax};
  int min = static_cast<int>(rule.pixels_min), max = static_cast<int>(rule.pixels_max);
  TRY(const std::optional<Config> size, config.object("size"));
  if (size) {
    // Keye's files have other names.
    const Config edges = size->with_names({{"shortest_edge", "min_pixels"}, {"longest_edge", "max_pixels"}});
    TRY(min, edges.integer("shortest_edge", range, min));
    TRY(max, edges.integer("longest_edge", range, max));
  }
  TRY(min, config.integer("min_pixels", range, min));
  TRY(max, config.integer("max_pixels", range, max));
  if (min > max || max < rule.unit * rule.unit)
    return invalid("max_pixels",
                   "{} is {}, but must be at least min_pixels ({}) and at least one token ({} x {} pixels)",
                   config.where("max_pixels"), max, min, rule.unit, rule.unit);
  rule.pixels_min = min;
  rule.pixels_max = max;
  return {};
}

Result<int> square_size(const Config& config, int absent) {
  TRY(const std::optional<Config> size, config.object("size"));
  if (!size) return absent;
  TRY(const int height, size->integer("height", kEdge));
  TRY_VOID(size->integer("width", {height, height}));
  return height;
}

Result<> refuse_false(const Config& config, std::string_view field) {
  TRY(const bool set, config.boolean(field, true));
  if (set) return {};
  return field_failure(field, ErrorCode::unsupported, "{} is false, but only true is supported",
                       config.where(field));
}

Result<> refuse_true(const Config& config, std::string_view field) {
  TRY(const bool set, config.boolean(field, false));
  if (!set) return {};
  return field_failure(field, ErrorCode::unsupported, "{} is true, but only false is supported",
                       config.where(field));
}

Result<std::array<float, 3>> read_channels(const Config& config, std::string_view field,
                                           Config::RealRange range, std::array<float, 3> values) {
  if (!config.has(field)) return values;
  TRY(const std::vector<double> given, config.numbers(field, 3, range));
  for (std::size_t i = 0; i < 3; ++i) values[i] = static_cast<float>(given[i]);
  return values;
}

}  // namespace octavo
