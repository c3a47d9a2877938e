// MiniMax-M3 with images (MiniMax, 2026): a transformer like CLIP's with RoPE in time, height and width
// instead of learned positions, and the text model. Each patch passes two matrices before squares of patches
// are joined.
#include <memory>
#include <utility>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields: the image processor limits the number of patches.
constexpr std::string_view kM3Vision = R"({"hidden_act": "gelu",
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "layer_norm_eps": 1e-05,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 32,
    "patch_size": 14,
    "rope_theta": 10000,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

// Each axis has a third of a head's pairs, and its own frequencies. The time of an image is 0.
Result<RopeSpec> read_m3_rope(const Config& config, int head_dim) {
  const int pairs = head_dim / 3 / 2;
  if (pairs < 1)
    return invalid("num_attention_heads", "{}: heads have {} elements, but at least 6 are needed",
                   config.where("num_attention_heads"), head_dim);
  RopeSpec rope{.rotary_dim = 6 * pairs, .axis_frequencies = AxisFrequencies::anew};
  TRY(rope.theta, config.number("rope_theta", {1, 1e12}));
  TRY(const std::optional<Config> given, config.object("rope_parameters"));
  if (given) {
    TRY(rope.theta, given->number("rope_theta", {1, 1e12}, rope.theta));
  }
  constexpr int kTime = 2;  // axis of the encoder's patches
  for (const int axis : {kTime, 0, 1})
    rope.axes.insert(rope.axes.end(), static_cast<std::size_t>(pairs), axis);
  return rope;
}

// MiniMax's files have these numbers in img_token_compression_config, those of transformers in vision_config.
Result<> read_m3_sizes(const Config& config, ImageInput& image) {
  TRY(const std::optional<Config> published, config.object("img_token_compression_config"));
  const Config sizes = published.value_or(config);
  TRY(image.patch_size, config.integer("patch_size", {1, 1024}));
  TRY(image.merge, sizes.integer("spatial_merge_size", {1, 16}, 2));
  TRY(image.frames, sizes.integer("temporal_patch_size", {1, 64}, 2));
  TRY_VOID(config.integer("num_channels", {3, 3}));
  return {};
}

void set_m3_names(Names& names, const std::string& tower, const std::string& layers,
                  const std::string& patches) {
  names.prefixes = {tower};
  names.encoder.patches = "embeddings." + patches;
  names.embedding.norm = "pre_layrnorm";
  names.layers = layers;
  names.attention.norm = "layer_norm1";
  names.mlp.norm = "layer_norm2";
  names.attention.out = "self_attn.out_proj";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.ignorable = {"language_model.*", "model.language_model.*", "lm_head.*"};
}

Result<ModelSpec> describe_m3_tower(Config vision, const Config& config, int out_dim) {
  vision.set_defaults(kM3Vision);
  TRY(ModelSpec tower, describe_dense(vision, {.kv_heads = "num_attention_heads",
                                               .head_dim = "",
                                               .activation = "",
                                               .eps = "layer_norm_eps",
                                               .norm = {.kind = NormKind::layer, .bias = true},
                                               .rotary = false}));
  TRY(const RopeSpec rope, read_m3_rope(vision, tower.layers[0].attention().head_dim));
  tower.ropes = {rope};
  for (LayerSpec& layer : tower.layers) {
    layer.attention().mask.causal = false;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.attention().rope = 0;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  TRY_VOID(set_activation(vision, tower));
  ImageInput image{.bias = false, .out_dim = out_dim};
  TRY_VOID(read_m3_sizes(vision, image));
  image.projector = {.activation = Activation::gelu, .bias = true};
  TRY(image.projector.hidden, config.integer("projector_hidden_size", kDim, out_dim));
  image.projector.patch_hidden = image.projector.hidden;
  tower.vocab = 0;
  tower.embedding.norm = std::exchange(tower.final_norm, {});
  tower.inputs.image = image;
  set_m3_names(tower.names, "vision_tower.vision_model.", "encoder.layers.", "patch_embedding");
  tower.names.projector.patch_matrices = {"multi_modal_projector.linear_1", "multi_modal_projector.linear_2"};
  tower.names.projector.matrices = {"patch_merge_mlp.linear_1", "patch_merge_mlp.linear_2"};
  tower.other_names = tower.names;  // names in transformers 5's files
  const std::string projector = "model.multi_modal_projector.";
  set_m3_names(*tower.other_names, "model.vision_tower.", "layers.", "proj");
  tower.other_names->projector.patch_matrices = {projector + "linear_1", projector + "linear_2"};
  tower.other_names->projector.matrices = {projector + "merge_linear_1", projector + "merge_linear_2"};
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_minimax_m3_vl(const Config& config) {
  TRY(ModelSpec spec, describe_minimax_m3(config));
  TRY_VOID(set_tied(spec, config));
  TRY(spec.media.token, config.with_names({{"image_token_index", "image_token_id"}})
                            .integer("image_token_index", {0, kMaxVocab}, 200025));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_m3_tower(vision.value_or(Config()), config, spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  spec.names.prefixes = {"language_model.model.", "model.language_model."};
  for (const char* other : {"vision_tower.*", "multi_modal_projector.*", "patch_merge_mlp.*",
                            "model.vision_tower.*", "model.multi_modal_projector.*"})
    spec.names.ignorable.emplace_back(other);
  spec.other_names = spec.names;
  spec.names.lm_head = "language_model.lm_head";
  return spec;
}

std::span<const Family> minimax_m3_vl_families() {
  static constexpr Family kRows[] = {{"MiniMaxM3SparseForConditionalGeneration", describe_minimax_m3_vl}};
  return kRows;
}

}  // namespace octavo
