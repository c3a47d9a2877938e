#include "model/internvl_chat_processor.h"

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "model/processor_file.h"
#include "weights/json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kToken = "<IMG_CONTEXT>";

// Returns whether the chat template writes `text`. Templates for lists of parts write the token of images,
// and others leave "<image>" to the program.
bool template_has(const std::string& directory, std::string_view text) {
  const fs::path own = fs::path(directory) / "chat_template.jinja",
                 tokenizer = fs::path(directory) / "tokenizer_config.json";
  std::error_code ignored;
  if (fs::exists(own, ignored)) {
    std::ifstream file(own);
    return std::string(std::istreambuf_iterator<char>(file), {}).find(text) != std::string::npos;
  }
  if (!fs::exists(tokenizer, ignored)) return false;
  const auto tree = read_json_file(tokenizer);
  if (!tree || !tree->is_object()) return false;
  const auto* chat = tree->get_object().if_contains("chat_template");
  return chat != nullptr && chat->is_string() &&
         std::string_view(chat->get_string()).find(text) != std::string_view::npos;
}

}  // namespace

// InternVL's first format has these settings in config.json, not in a file of the image processor.
Result<media::ProcessorConfig> read_internvl_chat(const std::string& directory, const Config& config,
                                                  const boost::json::object& overrides) {
  constexpr Config::Range kEdge{1, 1 << 16};
  constexpr Config::Range kTiles{1, 64};
  media::ProcessorConfig out{.filter = media::Filter::bicubic,
                             .mean = {0.485F, 0.456F, 0.406F},
                             .std = {0.229F, 0.224F, 0.225F},
                             .placeholder = template_has(directory, kToken) ? kToken : "<image>",
                             .token = kToken,
                             .before = "<img>",
                             .after = "</img>"};
  if (!overrides.empty())
    return field_failure("mm_processor_kwargs", ErrorCode::unsupported,
                         "the image settings of this model cannot be changed: remove mm_processor_kwargs");
  media::RatioTileRule rule;
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(rule.tile_size, vision.value_or(Config()).integer("image_size", kEdge, 448));
  TRY(rule.tiles_min, config.integer("min_dynamic_patch", kTiles, 1));
  TRY(rule.tiles_max, config.integer("max_dynamic_patch", kTiles, 12));
  TRY(const bool dynamic, config.boolean("dynamic_image_size", true));
  if (!dynamic) rule.tiles_min = rule.tiles_max = 1;
  if (rule.tiles_max > 1) TRY_VOID(refuse_false(config, "use_thumbnail"));
  if (rule.tiles_min > rule.tiles_max)
    return invalid("min_dynamic_patch", "{} is {}, but must be at most max_dynamic_patch {}",
                   config.where("min_dynamic_patch"), rule.tiles_min, rule.tiles_max);
  out.rule = rule;
  return out;
}

}  // namespace octavo
