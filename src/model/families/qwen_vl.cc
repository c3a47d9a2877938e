// Qwen2-VL (Wang et al., 2024) and Qwen2.5-VL (Bai et al., 2025): an encoder of images of any size, with RoPE
// for rows and columns, and a Qwen2 whose tokens have positions in time, height and width. In Qwen2.5-VL,
// most of the encoder's layers have windows.
#include <algorithm>
#include <numeric>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/qwen_vl.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The encoders do not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kQwen2Vision = R"({"depth": 32,
    "embed_dim": 1280,
    "hidden_act": "quick_gelu",
    "hidden_size": 3584,
    "in_channels": 3,
    "mlp_ratio": 4,
    "num_heads": 16,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "max_position_embeddings": 1,
    "vocab_size": 1})";
constexpr std::string_view kQwen25Vision = R"({"depth": 32,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "in_channels": 3,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 3584,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "window_size": 112,
    "max_position_embeddings": 1,
    "vocab_size": 1})";
constexpr float kVisionEps = 1e-6F;

// Sets the names of an encoder, which a checkpoint stores with one of two prefixes.
void set_names(ModelSpec& spec, const std::vector<std::string>& up, const std::string& down) {
  const auto names_under = [&](const std::string& prefix) {
    Names names = qwen_tower_names(prefix);
    names.mlp.up = up;
    names.mlp.down = down;
    names.final_norm = "merger.ln_q";
    names.projector.matrices = {prefix + "merger.mlp.0", prefix + "merger.mlp.2"};
    return names;
  };
  spec.names = names_under("visual.");
  spec.other_names = names_under("model.visual.");
}

Result<ModelSpec> describe_qwen2_tower(Config config) {
  config.set_defaults(kQwen2Vision);
  TRY(const int ratio, config.integer("mlp_ratio", {1, 64}));
  TRY(ModelSpec spec,
      describe_dense(config, {.dim = "embed_dim",
                              .layers = "depth",
                              .heads = "num_heads",
                              .kv_heads = "num_heads",
                              .hidden_to_dim = ratio,
                              .head_dim = "",
                              .activation = "",
                              .eps = "",
                              .norm = {.kind = NormKind::layer, .eps = kVisionEps, .bias = true},
                              .rotary = false}));
  TRY_VOID(set_activation(config, spec));
  TRY_VOID(make_qwen_tower(spec, config));
  spec.inputs.image->bias = false;
  set_names(spec, {"mlp.fc1"}, "mlp.fc2");
  return spec;
}

}  // namespace

Result<ModelSpec> describe_qwen2_5_tower(Config config) {
  config.set_defaults(kQwen25Vision);
  TRY(ModelSpec spec, describe_dense(config, {.layers = "depth",
                                              .heads = "num_heads",
                                              .kv_heads = "num_heads",
                                              .head_dim = "",
                                              .eps = "",
                                              .norm = {.kind = NormKind::rms, .eps = kVisionEps},
                                              .rotary = false}));
  TRY_VOID(make_qwen_tower(spec, config));
  set_names(spec, {"mlp.gate_proj", "mlp.up_proj"}, "mlp.down_proj");
  ImageInput& image = *spec.inputs.image;
  image.bias = false;
  TRY(const double steps, config.number("tokens_per_second", {1e-3, 1e4}, 4));
  image.time_steps = static_cast<float>(steps);
  TRY(const int window, config.integer("window_size", {image.unit(), 1 << 16}));
  image.window = window / image.unit();
  std::vector<int> whole{7, 15, 23, 31};
  if (config.has("fullatt_block_indexes")) {
    TRY(whole, config.integers("fullatt_block_indexes", {0, 1 << 16}));
  }
  for (int i = 0; i < std::ssize(spec.layers); ++i)
    spec.layers[static_cast<std::size_t>(i)].attention().mask.local = std::ranges::count(whole, i) == 0;
  return spec;
}

Result<> set_axes(ModelSpec& spec, const Config& config, const AxisSections& by) {
  RopeSpec& rope = spec.ropes.at(0);
  TRY(std::optional<Config> given, config.object("rope_scaling"));
  if (!given) {
    TRY(given, config.object("rope_parameters"));
  }
  std::vector<int> sections(by.absent.begin(), by.absent.end());
  if (given && given->has("mrope_section")) {
    TRY(sections, given->integers("mrope_section", {0, 1 << 12}));
  }
  const int pairs = rope.rotary_dim / 2;
  if (sections.size() != 3 || std::accumulate(sections.begin(), sections.end(), 0) != pairs)
    return invalid("mrope_section", "config.json: mrope_section must be 3 numbers with the sum {}", pairs);
  if (by.interleaved) {
    for (int pair = 0; pair < pairs; ++pair)
      rope.axes.push_back(pair < 3 * sections[static_cast<std::size_t>(pair % 3)] ? pair % 3 : 0);
    return {};
  }
  for (int axis = 0; axis < 3; ++axis)
    rope.axes.insert(rope.axes.end(), static_cast<std::size_t>(sections[static_cast<std::size_t>(axis)]),
                     axis);
  return {};
}

Result<> make_qwen_tower(ModelSpec& spec, const Config& config) {
  const int head_dim = spec.layers[0].attention().head_dim;
  if (head_dim % 4 != 0)
    return invalid("num_heads", "{}: heads have {} elements, but the number must be a multiple of 4",
                   config.where("num_heads"), head_dim);
  RopeSpec rope{.rotary_dim = head_dim, .axis_frequencies = AxisFrequencies::anew};
  for (int pair = 0; pair < head_dim / 2; ++pair) rope.axes.push_back(pair < head_dim / 4 ? 0 : 1);
  spec.ropes = {rope};
  spec.vocab = 0;
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    attention.mask.causal = false;
    attention.biases = {.qkv = true, .out = true};
    attention.rope = 0;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  ImageInput image;
  TRY(image.patch_size, config.integer("patch_size", {1, 1024}));
  TRY(image.merge, config.integer("spatial_merge_size", {1, 16}));
  TRY(image.frames, config.integer("temporal_patch_size", {1, 64}));
  TRY_VOID(config.integer("in_channels", {3, 3}));
  image.projector = {.activation = Activation::gelu, .hidden = spec.dim * image.square(), .bias = true};
  spec.inputs.image = image;
  return {};
}

Names qwen_tower_names(const std::string& prefix) {
  Names names;
  names.prefixes = {prefix};
  names.encoder.patches = "patch_embed.proj";
  names.layers = "blocks.";
  names.attention.norm = "norm1";
  names.mlp.norm = "norm2";
  names.attention.qkv = {"attn.qkv"};
  names.attention.out = "attn.proj";
  names.ignorable = {"model.embed_tokens.*",   "model.layers.*", "model.norm.*",
                     "model.language_model.*", "lm_head.*",      "mtp.*"};
  return names;
}

Result<ModelSpec> with_qwen_tower(ModelSpec spec, const Config& config,
                                  Result<ModelSpec> (*describe_tower)(Config), std::string_view out_dim) {
  spec.names.prefixes = {"model.", "model.language_model."};
  for (const char* other : {"visual.*", "model.visual.*"}) spec.names.ignorable.emplace_back(other);
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 151655));
  TRY(spec.media.video_token, config.integer("video_token_id", {0, kMaxVocab}, 151656));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_tower(vision.value_or(Config())));
  tower.inputs.image->out_dim = spec.dim;
  if (vision && vision->has(out_dim)) TRY_VOID(vision->integer(out_dim, {spec.dim, spec.dim}));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

static Result<ModelSpec> describe_qwen2_vl(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  TRY_VOID(set_axes(spec, config, {.absent = {16, 24, 24}}));
  return with_qwen_tower(std::move(spec), config, describe_qwen2_tower, "hidden_size");
}

static Result<ModelSpec> describe_qwen2_5_vl(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  TRY_VOID(set_axes(spec, config, {.absent = {16, 24, 24}}));
  return with_qwen_tower(std::move(spec), config, describe_qwen2_5_tower, "out_hidden_size");
}

std::span<const Family> qwen_vl_families() {
  static constexpr Family kRows[] = {
      {"Qwen2VLForConditionalGeneration", describe_qwen2_vl},
      {"Qwen2_5_VLForConditionalGeneration", describe_qwen2_5_vl},
  };
  return kRows;
}

}  // namespace octavo
