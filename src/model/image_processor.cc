#include "model/image_processor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <span>
#include <vector>

#include "model/any_size_processor.h"
#include "model/gguf_spec.h"
#include "model/internvl_chat_processor.h"
#include "model/padded_size_processor.h"
#include "model/params_file.h"
#include "model/params_images.h"
#include "model/pinned_tile_processor.h"
#include "model/processor_file.h"
#include "model/split_tile_processor.h"
#include "model/video_processor.h"

namespace octavo {
namespace {

Result<int> longest_edge(const Config& config, std::string_view field, int fallback) {
  TRY(const std::optional<Config> size, config.object(field));
  if (!size) return fallback;
  return size->integer("longest_edge", kEdge);
}

Result<> read_tiles(const Config& config, media::ProcessorConfig& out) {
  media::TileRule rule;
  TRY(rule.tile_size, longest_edge(config, "max_image_size", 364));
  TRY(rule.longest_edge, longest_edge(config, "size", 4 * 364));
  TRY(rule.split, config.boolean("do_image_splitting", true));
  out.rule = rule;
  return {};
}

// Ignores crop_to_patches, because InternVL's processor always cuts images into tiles.
Result<> read_ratio_tiles(const Config& config, media::ProcessorConfig& out) {
  constexpr Config::Range kTiles{1, 64};
  media::RatioTileRule rule;
  TRY(rule.tile_size, square_size(config, 384));
  TRY(rule.tiles_min, config.integer("min_patches", kTiles, rule.tiles_min));
  TRY(rule.tiles_max, config.integer("max_patches", kTiles, rule.tiles_max));
  if (rule.tiles_min > rule.tiles_max)
    return invalid("min_patches", "{} is {}, but must be at most max_patches {}", config.where("min_patches"),
                   rule.tiles_min, rule.tiles_max);
  out.rule = rule;
  return {};
}

Result<> read_fitting_tiles(const Config& config, media::ProcessorConfig& out) {
  TRY_VOID(refuse_false(config, "crop_to_patches"));
  TRY_VOID(read_ratio_tiles(config, out));
  auto& rule = std::get<media::RatioTileRule>(out.rule);
  TRY(rule.tile_size, square_size(config, 512));
  rule.tiles_min = 1;
  rule.fits = true;
  return {};
}

Result<> read_canvas_tiles(const Config& config, media::ProcessorConfig& out) {
  TRY_VOID(refuse_true(config, "resize_to_max_canvas"));
  media::CanvasTileRule rule;
  TRY(rule.tile_size, square_size(config, 336));
  TRY(rule.tiles_max, config.integer("max_patches", {1, 64}, rule.tiles_max));
  out.rule = rule;
  return {};
}

Result<> read_stretched(const Config& config, media::ProcessorConfig& out) {
  TRY_VOID(refuse_true(config, "do_pan_and_scan"));
  TRY(const int size, square_size(config, 224));
  out.rule = media::SquareRule{.size = size};
  return {};
}

// Reads `size`, {"shortest_edge"}. The centre crop must be a square with this side.
Result<> read_cropped(const Config& config, media::ProcessorConfig& out) {
  media::SquareRule rule{.size = 224, .crop = true};
  TRY(const std::optional<Config> size, config.object("size"));
  if (size) {
    TRY(rule.size, size->integer("shortest_edge", kEdge));
  }
  TRY(const std::optional<Config> cut, config.object("crop_size"));
  for (const char* side : {"height", "width"})
    if (cut) TRY_VOID(cut->integer(side, {rule.size, rule.size}));
  out.rule = rule;
  return {};
}

// `resample` applies only to the complete image. The processor's class defines how tiles are resampled.
Result<> read_padded_tiles(const Config& config, media::ProcessorConfig& out) {
  media::PaddedTileRule rule;
  TRY(rule.tile_size, square_size(config, 448));
  TRY(rule.patch_size, config.integer("patch_size", {1, 1024}, 14));
  TRY(rule.tiles_max, config.integer("dynamic_hd", {1, 64}, 36));
  TRY_VOID(config.integer("resample", {3, 3}, 3));
  TRY(const std::string name, config.text("image_processor_type", ""));
  rule.as_torch = name.starts_with("Phi4Multimodal");
  out.rule = rule;
  return {};
}

// Phi-3-vision's files have neither `size` nor patch_size.
Result<> read_centred_tiles(const Config& config, media::ProcessorConfig& out) {
  media::PaddedTileRule rule{.centred = true};
  TRY(rule.tile_size, square_size(config, 336));
  TRY(rule.patch_size, config.integer("patch_size", {1, 1024}, 14));
  TRY(rule.tiles_max, config.integer("num_crops", {1, 64}, 1));
  out.rule = rule;
  return {};
}

Result<> read_patch_search(const Config& config, media::ProcessorConfig& out) {
  media::PatchSearchRule rule;
  TRY(rule.unit, config.integer("patch_size", {1, 1024}, 16));
  const Config::Range range{1, std::max<std::int64_t>(1, kPixelsMax / rule.unit / rule.unit)};
  TRY(rule.patches_max, config.integer("max_num_patches", range, 256));
  TRY(rule.patches_min, config.integer("min_num_patches", {1, rule.patches_max}, 1));
  out.rule = rule;
  return {};
}

// pooling_kernel_size is the side, in patches, of the square that becomes one token.
Result<> read_token_budget(const Config& config, media::ProcessorConfig& out) {
  TRY(const int patch, config.integer("patch_size", {1, 1024}, 16));
  TRY(const int pooled, config.integer("pooling_kernel_size", {1, 64}, 3));
  media::TokenBudgetRule rule{.unit = patch * pooled};
  const Config::Range range{1, std::max<std::int64_t>(1, kPixelsMax / rule.unit / rule.unit)};
  TRY(rule.tokens_max, config.integer("max_soft_tokens", range, 280));
  out.rule = rule;
  return {};
}

// patch_size is a number or {"height", "width"} with equal values. spatial_merge_size is in the processor's
// file.
Result<> read_longest_edge(const Config& config, media::ProcessorConfig& out) {
  constexpr Config::Range kPatch{1, 1024};
  media::LongestEdgeRule rule;
  TRY(rule.longest, longest_edge(config, "size", 1024));
  auto patch = config.object("patch_size");
  if (patch && *patch) {
    TRY(rule.unit, (*patch)->integer("height", kPatch));
    TRY_VOID((*patch)->integer("width", {rule.unit, rule.unit}));
  } else {
    TRY(rule.unit, config.integer("patch_size", kPatch, 16));
  }
  TRY(const int merge, config.integer("spatial_merge_size", {1, 64}, 1));
  rule.unit *= merge;
  out.rule = rule;
  return {};
}

// An image processor of transformers, with the defaults of its fields.
struct Kind {
  std::string_view name;  // beginning of the class name
  Result<> (*read)(const Config& config, media::ProcessorConfig& out);
  media::ProcessorConfig absent;
  std::vector<std::string_view> overrides;  // fields that mm_processor_kwargs may override
  // If false, the model scales channel values, so do_normalize must be false.
  bool normalises = true;
  bool videos = false;  // the model also has a video processor
};

using media::Filter;
constexpr std::array<float, 3> kClipMean{0.48145466F, 0.4578275F, 0.40821073F};
constexpr std::array<float, 3> kClipStd{0.26862954F, 0.26130258F, 0.27577711F};

const media::ProcessorConfig kKimi{
    .filter = Filter::bicubic, .placeholder = "<|media_pad|>", .token = "<|media_pad|>"};

const Kind kProcessors[] = {
    {"CLIPImageProcessor", read_cropped, {.filter = Filter::bicubic, .mean = kClipMean, .std = kClipStd}, {}},
    {"Cohere2VisionImageProcessor",
     read_fitting_tiles,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "<|IMG_PATCH|>",
      .token = "<|IMG_PATCH|>",
      .before = "<|START_OF_IMG|>",
      .after = "<|END_OF_IMG|>",
      .row_break = "<|IMG_LINE_BREAK|>"},
     {"max_patches"}},
    {"Cosmos3EdgeImageProcessor",
     read_edge_size,
     {.filter = Filter::bicubic, .placeholder = "<|image_pad|>", .token = "<|image_pad|>"},
     {"size", "min_pixels", "max_pixels"}},
    {"Gemma3ImageProcessor",
     read_stretched,
     {.filter = Filter::bilinear,
      .placeholder = "<start_of_image>",
      .token = "<image_soft_token>",
      .before = "\n\n<start_of_image>",
      .after = "<end_of_image>\n\n"},
     {}},
    {"Gemma4ImageProcessor",
     read_token_budget,
     {.filter = Filter::bicubic,
      .placeholder = "<|image|>",
      .token = "<|image|>",
      .before = "<|image>",
      .after = "<image|>"},
     {"max_soft_tokens"},
     false},
    {"Glm46VImageProcessor",
     read_glm_size,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "<|image|>",
      .token = "<|image|>"},
     {"size", "min_pixels", "max_pixels"}},
    {"Glm4vImageProcessor",
     read_glm_size,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "<|image|>",
      .token = "<|image|>"},
     {"size", "min_pixels", "max_pixels"}},
    {"GotOcr2ImageProcessor",
     read_ratio_tiles,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "<IMG_CONTEXT>",
      .token = "<IMG_CONTEXT>",
      .before = "<img>",
      .after = "</img>"},
     {"min_patches", "max_patches"}},
    {"Idefics3ImageProcessor", read_tiles, {}, {"size", "do_image_splitting"}},
    {"Lfm2VlImageProcessor", read_split_tiles, {.filter = Filter::bilinear}, {}},
    {"KimiVLImageProcessor", read_padded_size, kKimi, {}},
    {"Kimi_K25ImageProcessor", read_padded_size, kKimi, {}},
    {"Llama4ImageProcessor",
     read_canvas_tiles,
     {.filter = Filter::bilinear, .placeholder = "<|image|>", .token = "<|patch|>"},
     {}},
    {"LlavaNextImageProcessor",
     read_next_tiles,
     {.filter = Filter::bicubic, .mean = kClipMean, .std = kClipStd},
     {"image_grid_pinpoints"}},
    {"LlavaOnevisionImageProcessor",
     read_onevision_tiles,
     {.filter = Filter::bicubic, .mean = kClipMean, .std = kClipStd},
     {"image_grid_pinpoints"}},
    {"MiniMaxM3VLImageProcessor",
     read_m3_size,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "]<]image[>[",
      .token = "]<]image[>[",
      .before = "]<]start of image[>[",
      .after = "]<]end of image[>["},
     {"size", "min_pixels", "max_pixels"}},
    {"PaddleOCRVLImageProcessor",
     read_paddle_size,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "<|IMAGE_PLACEHOLDER|>",
      .token = "<|IMAGE_PLACEHOLDER|>"},
     {"size", "min_pixels", "max_pixels"}},
    {"Phi3VImageProcessor",
     read_centred_tiles,
     {.mean = kClipMean, .std = kClipStd, .placeholder = "<|image|>", .token = "<|image|>"},
     {"num_crops"}},
    {"Phi4MMImageProcessor",
     read_padded_tiles,
     {.placeholder = "<|endoftext10|>", .token = "<|endoftext10|>"},
     {"dynamic_hd"}},
    {"Phi4MultimodalImageProcessor",
     read_padded_tiles,
     {.placeholder = "<|image|>", .token = "<|image|>"},
     {"dynamic_hd"}},
    {"PixtralImageProcessor",
     read_longest_edge,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "[IMG]",
      .token = "[IMG]",
      .after = "[IMG_END]",
      .row_break = "[IMG_BREAK]"},
     {"size"}},
    {"Qwen2VLImageProcessor",
     read_any_size,
     {.filter = Filter::bicubic,
      .mean = kClipMean,
      .std = kClipStd,
      .placeholder = "<|image_pad|>",
      .token = "<|image_pad|>"},
     {"size", "min_pixels", "max_pixels", "fps", "num_frames"},
     true,
     true},
    {"Siglip2ImageProcessorNoUpscale",
     read_patch_search,
     {.filter = Filter::bilinear, .token = "<|dummy_0|>"},
     {}},
    {"SiglipImageProcessor", read_stretched, {.filter = Filter::bicubic}, {}},
    {"SmolVLMImageProcessor", read_tiles, {}, {"size", "do_image_splitting"}},
};

// Texts of models that use the image processor of another model, by `model_type` of config.json.
struct Wording {
  std::string_view model_type;
  std::string_view token;  // placeholder and token of an image
  bool breaks = true;      // false: there are no texts before, between and after the rows of an image
  // If not empty, the placeholder is the token between Qwen-VL's marks, and this text follows it.
  std::string_view behind = {};
};
constexpr Wording kWordings[] = {
    {"Keye", "<|image_pad|>"},
    {"KeyeVL1_5", "<|image_pad|>"},
    {"dots_ocr", "<|imgpad|>"},
    {"lighton_ocr", "<|image_pad|>", false},
    {"opencua", "<|media_placeholder|>"},
    {"qwen2_5_omni", "<|IMAGE|>"},
    {"hyperclovax_vision_v2", "<|IMAGE_PAD|>"},
    {.model_type = "bailing_moe_v3_vl", .token = "<|image_pad|>", .behind = "\n"},
    {"vlm", "<|IMAGE_PAD|>"},  // HyperCLOVA X SEED Think 32B as published
};

Result<std::string> type_of(const Config& config) {
  const Config outer = config.outer();
  return (outer.has("model_type") ? outer : config).text("model_type", "");
}

// `type` is the model_type of config.json. Other models have the texts of the image processor.
void set_wording(std::string_view type, media::ProcessorConfig& out) {
  const auto* found = std::ranges::find(kWordings, type, &Wording::model_type);
  if (found == std::end(kWordings)) return;
  out.placeholder = out.token = found->token;
  if (!found->breaks) out.before = out.after = out.row_break = "";
  if (found->behind.empty()) return;
  out.before = "<|vision_start|>";
  out.after = "<|vision_end|>";
  out.placeholder = out.before + out.token + out.after;
  out.after += found->behind;
}

// The configurations of some models replace settings of the image processor. That of Alpamayo 2 has limits of
// pixels.
Result<> set_model_sizes(const std::string& directory, const Config& processor, media::ProcessorConfig& out) {
  const auto config = Config::load(directory);
  if (!config) return {};
  TRY(const std::string type, type_of(*config));
  if (type.starts_with("ovis2_")) return read_ovis_size(*config, processor, out);
  auto* const size = std::get_if<media::AnySizeRule>(&out.rule);
  return size != nullptr && type == "alpamayo2_super" ? read_pixels(*config, *size) : Result<>();
}

// Keye's files have SigLIP's name for another processor.
Result<const Kind*> kind_of(const Config& config, std::string_view model_type) {
  const bool kimi = config.has("media_proc_cfg");  // the file has no image_processor_type
  TRY(std::string name, config.text("image_processor_type", kimi ? "Kimi_K25ImageProcessor" : ""));
  if (model_type.starts_with("Keye")) name = "PaddleOCRVLImageProcessor";
  for (const Kind& kind : kProcessors)
    if (name.starts_with(kind.name)) return &kind;
  return field_failure("image_processor_type", ErrorCode::unsupported,
                       "{} is \"{}\", which is not supported: must be one of {}",
                       config.where("image_processor_type"), name,
                       fmt::join(kProcessors | std::views::transform(&Kind::name), ", "));
}

Result<> check_overrides(const Kind& kind, const boost::json::object& overrides) {
  for (const auto& [name, value] : overrides)
    if (std::ranges::find(kind.overrides, std::string_view(name)) == kind.overrides.end())
      return field_failure(
          "mm_processor_kwargs", ErrorCode::unsupported, "{} of {} cannot be changed; only these can: {}",
          std::string_view(name), kind.name,
          kind.overrides.empty() ? "none" : fmt::format("{}", fmt::join(kind.overrides, ", ")));
  return {};
}

Result<media::Filter> filter_of(const Config& config, media::Filter fallback) {
  if (!config.has("resample")) return fallback;
  TRY(const int number, config.integer("resample", {0, 5}));  // Pillow's numbers of resampling filters
  switch (number) {
    case 1:
      return media::Filter::lanczos;
    case 2:
      return media::Filter::bilinear;
    case 3:
      return media::Filter::bicubic;
    default:
      return field_failure(
          "resample", ErrorCode::unsupported,
          "{} is {}, which is not supported: must be 1 (lanczos), 2 (bilinear) or 3 (bicubic)",
          config.where("resample"), number);
  }
}

Result<> set_video_sampling(const Config& config, const boost::json::object& overrides, media::VideoRule& video) {
  const bool fps = overrides.contains("fps"), frames = overrides.contains("num_frames");
  if (fps && frames) return invalid("mm_processor_kwargs", "fps and num_frames cannot both be set");
  if (fps) {
    TRY(video.fps, config.number("fps", {1e-3, 1e3}));
    video.num_frames = 0;
  }
  if (frames) {
    TRY(video.num_frames, config.integer("num_frames", {1, video.frames_max}));
  }
  video.samples = video.samples || fps || frames;
  return {};
}

// `type` is the model_type of config.json.
Result<media::ProcessorConfig> read_kind(const std::string& directory, const Config& config,
                                         std::string_view type, const boost::json::object& overrides) {
  TRY(const Kind* const kind, kind_of(config, type));
  TRY_VOID(check_overrides(*kind, overrides));
  for (const std::string_view step : {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"}) {
    const bool wanted = step != "do_normalize" || kind->normalises;
    TRY(const bool done, config.boolean(step, wanted));
    if (done != wanted)
      return field_failure(step, ErrorCode::unsupported, "{} is {}, but must be {}", config.where(step), done,
                           wanted);
  }
  media::ProcessorConfig out = kind->absent;
  set_wording(type, out);
  TRY_VOID(kind->read(config, out));
  TRY_VOID(set_model_sizes(directory, config, out));
  TRY(out.filter, filter_of(config, out.filter));
  TRY(const double scale, config.number("rescale_factor", {1e-6, 1}, 1.0 / 255));
  out.scale = static_cast<float>(scale);
  if (!kind->normalises) return out;
  TRY(out.mean, read_channels(config, "image_mean", {-1e3, 1e3}, out.mean));
  TRY(out.std, read_channels(config, "image_std", {1e-6, 1e3}, out.std));
  if (kind->videos) {
    TRY(out.video, read_video_processor(directory, config, out));
    TRY_VOID(set_video_sampling(config, overrides, *out.video));
  }
  return out;
}

Result<media::ProcessorConfig> read_gguf_images(const std::string& path, const std::string& mmproj,
                                                const boost::json::object& overrides) {
  TRY(const GgufImages images, gguf_images(path, mmproj));
  const Config config = images.config.with_fields_of(Config::of(overrides, mmproj, {}));
  TRY(media::ProcessorConfig out, read_kind(path, config, images.model_type, overrides));
  out.token = images.token;
  return out;
}

}  // namespace

Result<media::ProcessorConfig> read_image_processor(const std::string& directory,
                                                    const boost::json::object& overrides,
                                                    const std::string& mmproj) {
  if (!mmproj.empty()) return read_gguf_images(directory, mmproj, overrides);
  std::string type;
  if (const auto model = Config::load(directory)) {
    TRY(type, type_of(*model));
    if (in_mistral_format(directory)) return read_own_images(*model, overrides);
    if (has_chat_images(type)) return read_internvl_chat(directory, *model, type, overrides);
  }
  TRY(const Config config, read_processor_file(directory, "image_processor", overrides));
  return read_kind(directory, config, type, overrides);
}

}  // namespace octavo
