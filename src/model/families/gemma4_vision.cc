// Gemma 4 with images (Gemma Team, 2026): an encoder of images of any size, and the text model. The encoder
// has learned positions, and RoPE for columns and rows. Squares of patches are averaged. In the larger
// models, tokens of an image see each other in layers with a window.
#include "kernels/sampling_math.h"
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// The encoder needs neither vocab_size nor max_position_embeddings, because the image processor limits the
// number of patches.
constexpr std::string_view kGemma4Vision = R"({"head_dim": 64,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "max_position_embeddings": 1,
    "num_attention_heads": 12,
    "num_hidden_layers": 16,
    "num_key_value_heads": 12,
    "patch_size": 16,
    "pooling_kernel_size": 3,
    "position_embedding_size": 10240,
    "rms_norm_eps": 1e-06,
    "vocab_size": 1})";

// RoPE rotates the first half of a head by the patch's column, and the second half by its row.
Result<RopeSpec> read_gemma4_rope(const Config& config, int head_dim) {
  if (head_dim % 4 != 0)
    return invalid("head_dim", "{} is {}, but must be a multiple of 4", config.where("head_dim"), head_dim);
  RopeSpec rope{.rotary_dim = head_dim, .theta = 100, .axis_frequencies = AxisFrequencies::anew};
  TRY(const std::optional<Config> given, config.object("rope_parameters"));
  if (given) {
    TRY(rope.theta, given->number("rope_theta", {1, 1e12}, rope.theta));
  }
  for (int pair = 0; pair < head_dim / 2; ++pair) rope.axes.push_back(pair < head_dim / 4 ? 1 : 0);
  return rope;
}

Names tower_names(bool bounded) {
  const std::string tower = "model.vision_tower.", layer = tower + "encoder.layers.";
  Names names;
  names.prefixes = {""};
  names.bounded = bounded;
  names.encoder.patches = tower + "patch_embedder.input_proj";
  names.embedding.positions = tower + "patch_embedder.position_embedding_table";
  names.layers = layer;
  names.attention.post_norm = "post_attention_layernorm";
  names.mlp.norm = "pre_feedforward_layernorm";
  names.mlp.post_norm = "post_feedforward_layernorm";
  names.attention.qkv = {"self_attn.q_proj.linear", "self_attn.k_proj.linear", "self_attn.v_proj.linear"};
  names.attention.out = "self_attn.o_proj.linear";
  names.mlp.up = {"mlp.gate_proj.linear", "mlp.up_proj.linear"};
  names.mlp.down = "mlp.down_proj.linear";
  names.projector.matrices = {"model.embed_vision.embedding_projection"};
  names.ignorable = {"model.language_model.*", "model.audio_tower.*", "model.embed_audio.*", "lm_head.*"};
  return names;
}

Result<ModelSpec> describe_gemma4_tower(Config config, int out_dim) {
  config.set_defaults(kGemma4Vision);
  TRY(ModelSpec tower, describe_dense(config, {.activation = "hidden_activation", .rotary = false}));
  TRY_VOID(refuse(config, "attention_bias", true));
  TRY(const bool bounded, config.boolean("use_clipped_linears", false));
  TRY(const bool standard, config.boolean("standardize", false));
  tower.vocab = 0;
  tower.names = tower_names(bounded);
  TRY(const RopeSpec rope, read_gemma4_rope(config, tower.layers[0].attention().head_dim));
  tower.ropes = {rope};
  for (LayerSpec& layer : tower.layers) {
    Attention& attention = layer.attention();
    attention.mask.causal = false;
    attention.scores.scale = 1;
    attention.rope = 0;
    attention.rope_by_halves = true;
    attention.norms.qk_kind = QkNorm::shared;
    attention.norms.qk = attention.norms.v = layer.pre_norm;
    attention.norms.v.stored = false;
    layer.post_norm = layer.pre_norm;
  }
  ImageInput image{.bias = false, .storage = PatchStorage::channels_last, .out_dim = out_dim};
  TRY(image.patch_size, config.integer("patch_size", {1, 1024}));
  TRY(image.merge, config.integer("pooling_kernel_size", {1, 64}));
  TRY(image.axis_positions, config.integer("position_embedding_size", {1, 1 << 20}));
  tower.embedding.learned_positions = 2 * image.axis_positions;
  // transformers multiplies the values by sqrt(dim) before this norm. A smaller epsilon has the same effect.
  NormSpec norm = tower.final_norm;
  norm.stored = false;
  norm.eps /= static_cast<float>(tower.dim);
  image.projector = {.mean = true, .norm = norm};
  tower.inputs.image = image;
  tower.final_norm = {};
  if (!standard) return tower;
  tower.final_norm = {.kind = NormKind::affine, .bias = true};
  tower.names.encoder.standard_scale = "model.vision_tower.std_scale";
  tower.names.encoder.standard_bias = "model.vision_tower.std_bias";
  return tower;
}

}  // namespace

static Result<ModelSpec> describe_gemma4_vision(const Config& config) {
  TRY(ModelSpec spec, describe_gemma4(config));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  if (!vision) return spec;  // a text model
  TRY(spec.media.token, config.integer("image_token_id", {0, kMaxVocab}, 258880));
  TRY(ModelSpec tower, describe_gemma4_tower(*vision, spec.dim));
  TRY(const std::string both_ways, config.text("use_bidirectional_attention", ""));
  spec.media.whole_images = both_ways == "vision";
  for (LayerSpec& layer : spec.layers)
    layer.attention().mask.whole_images = layer.attention().mask.window > 0;
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> gemma4_vision_families() {
  static constexpr Family kRows[] = {{"Gemma4ForConditionalGeneration", describe_gemma4_vision}};
  return kRows;
}

}  // namespace octavo
