// Kimi-VL (Moonshot AI, 2025), Kimi K2.5 and K2.6 (2026) with images: an encoder of images of any size with a
// grid of learned positions and RoPE whose pairs alternate between columns and rows ("MoonViT"), and the text
// model of DeepSeek-V3.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kMoonVision = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "pos_emb_height": 64,
    "pos_emb_width": 64,
    "max_position_embeddings": 1,
    "vocab_size": 1})";
constexpr NormSpec kMoonNorm{.kind = NormKind::layer, .eps = 1e-5F, .bias = true};

Result<ModelSpec> describe_kimi_text(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  spec.predictor.reset();
  spec.names.prefixes = {"model.language_model.", "language_model.model."};
  for (const char* other : {"vision_tower.*", "mm_projector.*", "multi_modal_projector.*"})
    spec.names.ignorable.emplace_back(other);
  spec.other_names = spec.names;  // names in the published checkpoints
  spec.other_names->lm_head = "language_model.lm_head";
  return spec;
}

// Reads merge_kernel_size, a list of two equal numbers.
Result<int> read_merge(const Config& config) {
  constexpr std::string_view kField = "merge_kernel_size";
  TRY(const std::vector<int> sides, config.integers(kField, {1, 16}));
  if (sides.empty()) return 2;
  if (sides.size() == 2 && sides[0] == sides[1]) return sides[0];
  return invalid(kField, "{} must be two equal numbers", config.where(kField));
}

Names moon_names() {
  Names names;
  names.prefixes = {"vision_tower."};
  names.encoder.patches = "patch_embed.proj";
  names.embedding.positions = "patch_embed.pos_emb";
  names.layers = "encoder.blocks.";
  names.attention.norm = "norm0";
  names.mlp.norm = "norm1";
  names.attention.qkv = {"wqkv"};
  names.attention.out = "wo";
  names.mlp.up = {"mlp.fc0"};
  names.mlp.down = "mlp.fc1";
  names.final_norm = "encoder.final_layernorm";
  names.ignorable = {"language_model.*", "model.language_model.*", "lm_head.*"};
  return names;
}

Result<ModelSpec> describe_moon_tower(const Config& given, int out_dim) {
  Config config = given.with_names({{"hidden_size", "vt_hidden_size"},
                                    {"intermediate_size", "vt_intermediate_size"},
                                    {"num_attention_heads", "vt_num_attention_heads"},
                                    {"num_hidden_layers", "vt_num_hidden_layers"},
                                    {"pos_emb_height", "init_pos_emb_height"},
                                    {"pos_emb_width", "init_pos_emb_width"}});
  config.set_defaults(kMoonVision);
  TRY(ModelSpec tower, describe_dense(config, {.kv_heads = "num_attention_heads",
                                               .head_dim = "",
                                               .eps = "",
                                               .norm = kMoonNorm,
                                               .rotary = false}));
  const int head_dim = tower.layers[0].attention().head_dim;
  if (head_dim % 4 != 0)
    return invalid("num_attention_heads",
                   "{}: heads have {} elements, but the number must be a multiple of 4",
                   config.where("num_attention_heads"), head_dim);
  RopeSpec rope{.rotary_dim = head_dim, .interleaved = true, .axis_frequencies = AxisFrequencies::anew};
  for (int pair = 0; pair < head_dim / 2; ++pair) rope.axes.push_back(pair % 2 == 0 ? 1 : 0);
  tower.ropes = {rope};
  for (LayerSpec& layer : tower.layers) {
    Attention& attention = layer.attention();
    attention.mask.causal = false;
    attention.biases = {.qkv = true, .out = true};
    attention.rope = 0;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  ImageInput image{.out_dim = out_dim};
  TRY(image.patch_size, config.integer("patch_size", {1, 1024}));
  TRY(image.merge, read_merge(config));
  TRY(image.grid.side, config.integer("pos_emb_height", {1, 1 << 10}));
  TRY_VOID(config.integer("pos_emb_width", {image.grid.side, image.grid.side}));
  image.grid.stretch = PositionStretch::bicubic;
  image.grid.in_rows = true;
  image.projector = {.patch_norm = kMoonNorm,
                     .activation = Activation::gelu,
                     .hidden = tower.dim * image.square(),
                     .bias = true};
  tower.embedding.learned_positions = image.grid.side * image.grid.side;
  tower.vocab = 0;
  tower.inputs.image = image;
  tower.names = moon_names();
  return tower;
}

// `projector` has the names of the projector: norm, first and second matrix.
Result<ModelSpec> describe_kimi(const Config& config, const std::array<const char*, 3>& projector) {
  TRY(ModelSpec spec, describe_kimi_text(config));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision || !vision->has("patch_size")) return spec;  // a text model
  TRY(spec.media.token, config.with_names({{"media_placeholder_token_id", "image_token_id"}})
                            .integer("media_placeholder_token_id", {0, kMaxVocab}, 163605));
  TRY(ModelSpec tower, describe_moon_tower(*vision, spec.dim));
  tower.names.projector.patch_norm = projector[0];
  tower.names.projector.matrices = {projector[1], projector[2]};
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_kimi_vl(const Config& config) {
  return describe_kimi(config, {"multi_modal_projector.pre_norm", "multi_modal_projector.linear_1",
                                "multi_modal_projector.linear_2"});
}

static Result<ModelSpec> describe_kimi_k25(const Config& config) {
  return describe_kimi(config, {"mm_projector.pre_norm", "mm_projector.proj.0", "mm_projector.proj.2"});
}

std::span<const Family> kimi_vl_families() {
  static constexpr Family kRows[] = {
      {"KimiK25ForConditionalGeneration", describe_kimi_k25},
      {"KimiVLForConditionalGeneration", describe_kimi_vl},
      {"Kimi_K25ForConditionalGeneration", describe_kimi_k25},
  };
  return kRows;
}

}  // namespace octavo
