// Llama 4 with images (Meta, 2025): an encoder of square tiles with learned positions and RoPE, and the text
// model. The projector joins squares of patches and has three matrices.
#include <cmath>

#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// The encoder does not use the last two fields.
constexpr std::string_view kLlama4Vision = R"({"hidden_size": 768,
    "image_size": 448,
    "intermediate_size": 5632,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 34,
    "patch_size": 14,
    "pixel_shuffle_ratio": 0.5,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
    "rope_theta": 10000,
    "vision_output_dim": 7680,
    "max_position_embeddings": 1,
    "vocab_size": 1})";

Names llama4_tower_names() {
  const std::string adapter = "vision_model.vision_adapter.mlp.";
  Names names;
  names.prefixes = {"vision_model."};
  names.encoder.patches = "patch_embedding.linear";
  names.encoder.class_token = "class_embedding";
  names.embedding.positions = "positional_embedding_vlm";
  names.embedding.norm = "layernorm_pre";
  names.layers = "model.layers.";
  names.attention.out = "self_attn.o_proj";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.final_norm = "layernorm_post";
  names.projector.matrices = {adapter + "fc1", adapter + "fc2", "multi_modal_projector.linear_1"};
  names.ignorable = {"language_model.*"};
  return names;
}

// The first half of a head's pairs is rotated by the column, the other half by the row.
Result<RopeSpec> read_vision_rope(const Config& config, int head_dim) {
  if (head_dim % 4 != 0)
    return invalid("num_attention_heads",
                   "{}: heads have {} elements, but the number must be a multiple of 4",
                   config.where("num_attention_heads"), head_dim);
  RopeSpec rope{.rotary_dim = head_dim, .interleaved = true, .axis_frequencies = AxisFrequencies::anew};
  TRY(rope.theta, config.number("rope_theta", {1, 1e12}));
  TRY(const std::optional<Config> given, config.object("rope_parameters"));
  if (given) {
    TRY(rope.theta, given->number("rope_theta", {1, 1e12}, rope.theta));
  }
  for (int pair = 0; pair < head_dim / 2; ++pair) rope.axes.push_back(pair < head_dim / 4 ? 1 : 0);
  return rope;
}

Result<ModelSpec> describe_llama4_tower(Config config, int out_dim) {
  config.set_defaults(kLlama4Vision);
  TRY(ModelSpec tower, describe_dense(config, {.kv_heads = "num_attention_heads",
                                               .head_dim = "",
                                               .activation = "",
                                               .eps = "",
                                               .norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                                               .rotary = false}));
  TRY_VOID(support(config, "hidden_act", "gelu"));
  TRY_VOID(support(config, "vision_feature_select_strategy", "default"));
  TRY_VOID(refuse(config, "multi_modal_projector_bias", true));
  TRY(const RopeSpec rope, read_vision_rope(config, tower.layers[0].attention().head_dim));
  tower.ropes = {rope};
  for (LayerSpec& layer : tower.layers) {
    Attention& attention = layer.attention();
    attention.mask.causal = false;
    attention.biases = {.qkv = true, .out = true};
    attention.rope = 0;
    layer.mlp().gated = false;
    layer.mlp().activation = Activation::gelu;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  ImageInput image{.bias = false,
                   .storage = PatchStorage::matrix,
                   .classes = {.count = 1, .last = true},
                   .out_dim = out_dim};
  TRY(image.image_size, config.integer("image_size", {1, 4096}));
  TRY(image.patch_size, config.integer("patch_size", {1, image.image_size}));
  TRY_VOID(config.integer("num_channels", {3, 3}));
  TRY(const double ratio, config.number("pixel_shuffle_ratio", {1.0 / 64, 1}));
  image.merge = static_cast<int>(std::lround(1 / ratio));
  image.projector = {.activation = Activation::gelu, .activated_middle = true};
  TRY(image.projector.hidden, config.integer("projector_input_dim", kDim));
  TRY(image.projector.middle, config.integer("projector_output_dim", kDim));
  TRY_VOID(config.integer("vision_output_dim", {image.projector.middle, image.projector.middle}));
  const int side = image.image_size / image.patch_size;
  tower.embedding.learned_positions = tower.max_positions = side * side + 1;
  tower.embedding.norm = tower.final_norm;
  tower.vocab = 0;
  tower.inputs.image = image;
  tower.names = llama4_tower_names();
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_llama4_vision(const Config& config) {
  TRY(ModelSpec spec, describe_llama4(config));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision || !vision->has("patch_size")) return spec;  // a text model
  TRY(spec.media.token, config.integer("image_token_index", {0, kMaxVocab}, 200092));
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, spec.media.token));
  TRY(ModelSpec tower, describe_llama4_tower(*vision, spec.dim));
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> llama4_vision_families() {
  static constexpr Family kRows[] = {{"Llama4ForConditionalGeneration", describe_llama4_vision}};
  return kRows;
}

}  // namespace octavo
