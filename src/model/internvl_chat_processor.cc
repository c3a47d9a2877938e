#include "model/internvl_chat_processor.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "model/processor_file.h"
#include "weights/json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

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

// Models in InternVL's first format and similar ones. They have the settings of images in config.json.
struct Chat {
  std::string_view model_type;
  std::string_view token = "<IMG_CONTEXT>";
  std::string_view before = "<img>", after = "</img>";
  bool numbered = false;   // a text with the number of the tile precedes each tile
  bool own_scale = false;  // norm_mean and norm_std have the mean and the deviation of the channels
  media::RatioTileRule::Choice choice = media::RatioTileRule::Choice::ratio;
};
constexpr Chat kChats[] = {
    {"internvl_chat"},
    {"skywork_chat"},
    {"eagle_2_5_vl"},
    {"h2ovl_chat"},
    {.model_type = "NVLM_D",
     .token = "<|vision_pad|>",
     .before = "<Image>",
     .after = "</Image>",
     .numbered = true},
    {.model_type = "Llama_Nemotron_Nano_VL",
     .token = "<image>",
     .own_scale = true,
     .choice = media::RatioTileRule::Choice::area},
    {.model_type = "NemotronH_Nano_VL_V2", .token = "<image>", .own_scale = true},
    {.model_type = "NemotronH_Nano_Omni_Reasoning_V3", .token = "<image>", .own_scale = true},
    {.model_type = "NemotronH_Omni_Reasoning_V3", .token = "<image>", .own_scale = true},
    {.model_type = "NemotronH_Super_Omni_Reasoning_V3", .token = "<image>", .own_scale = true},
};

Result<> set_scale(const Config& config, media::ProcessorConfig& out) {
  out.mean = {0.48145466F, 0.4578275F, 0.40821073F};
  out.std = {0.26862954F, 0.26130258F, 0.27577711F};
  TRY(out.mean, read_channels(config, "norm_mean", {-1e3, 1e3}, out.mean));
  TRY(out.std, read_channels(config, "norm_std", {1e-6, 1e3}, out.std));
  return {};
}

// Images of any size, with limits for the number of patches.
Result<media::PatchBudgetRule> read_budget(const Config& config, const Config& vision, const Config& args) {
  media::PatchBudgetRule rule;
  TRY(rule.unit, vision.integer("patch_size", {1, 1024}, 16));
  const Config::Range range{1, std::max<std::int64_t>(1, kPixelsMax / rule.unit / rule.unit)};
  TRY(rule.patches_max, args.integer("max_num_patches", {0, range.most}, 0));
  if (rule.patches_max == 0) rule.patches_max = static_cast<int>(range.most);
  TRY(rule.patches_min, args.integer("min_num_patches", {1, rule.patches_max}));
  TRY(const double ratio, config.number("downsample_ratio", {1.0 / 64, 1}, 0.5));
  rule.merge = static_cast<int>(std::lround(1 / ratio));
  return rule;
}

// The largest number of tiles is in one of two fields of config.json, or in the file of the image processor.
Result<int> read_tiles_max(const std::string& directory, const Config& config) {
  constexpr Config::Range kTiles{1, 64};
  for (const char* field : {"max_dynamic_patch", "max_num_tiles"})
    if (config.has(field)) return config.integer(field, kTiles);
  const auto file = read_processor_file(directory, "image_processor", {});
  return file ? file->integer("max_num_tiles", kTiles, 12) : 12;
}

}  // namespace

bool has_chat_images(std::string_view model_type) {
  return std::ranges::find(kChats, model_type, &Chat::model_type) != std::end(kChats);
}

Result<media::ProcessorConfig> read_internvl_chat(const std::string& directory, const Config& config,
                                                  std::string_view model_type,
                                                  const boost::json::object& overrides) {
  constexpr Config::Range kTiles{1, 64};
  const Chat& chat = *std::ranges::find(kChats, model_type, &Chat::model_type);
  const std::string token(chat.token);
  media::ProcessorConfig out{.filter = media::Filter::bicubic,
                             .mean = {0.485F, 0.456F, 0.406F},
                             .std = {0.229F, 0.224F, 0.225F},
                             .placeholder = template_has(directory, token) ? token : "<image>",
                             .token = token,
                             .before = std::string(chat.before),
                             .after = std::string(chat.after)};
  if (!overrides.empty())
    return field_failure("mm_processor_kwargs", ErrorCode::unsupported,
                         "the image settings of this model cannot be changed: remove mm_processor_kwargs");
  if (chat.own_scale) TRY_VOID(set_scale(config, out));
  TRY(const std::optional<Config> given, config.object("vision_config"));
  const Config vision = given.value_or(Config());
  TRY(const std::optional<Config> args, vision.object("args"));
  if (args && args->has("min_num_patches")) {
    TRY(out.rule, read_budget(config, vision, *args));
    return out;
  }
  media::RatioTileRule rule{.numbered = chat.numbered, .choice = chat.choice};
  TRY(rule.tile_size, vision.integer("image_size", kEdge, chat.own_scale ? 512 : 448));
  TRY(rule.tile_size, config.integer("force_image_size", kEdge, rule.tile_size));
  TRY(rule.tiles_min, config.integer("min_dynamic_patch", kTiles, 1));
  TRY(rule.tiles_max, read_tiles_max(directory, config));
  TRY(const bool dynamic, config.boolean("dynamic_image_size", true));
  if (!dynamic) rule.tiles_min = rule.tiles_max = 1;
  if (rule.tiles_max > 1) TRY_VOID(refuse_false(config, "use_thumbnail"));
  if (rule.tiles_min > rule.tiles_max)
    return invalid("min_dynamic_patch", "{} is {}, but must be at most max_dynamic_patch {}",
                   config.where("min_dynamic_patch"), rule.tiles_min, rule.tiles_max);
  TRY(rule.twice, config.boolean("use_msac", false));
  out.rule = rule;
  return out;
}

}  // namespace octavo
