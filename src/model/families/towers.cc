#include "model/families/towers.h"

#include <memory>
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

const std::string_view kClipDefaults = R"({"hidden_act": "quick_gelu",
    "hidden_size": 768,
    "image_size": 224,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-05,
    "num_attention_heads": 12,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 32,
    "vocab_size": 1})";  // required by the reader of the config, but the encoders have no vocabulary

// The reader of the config requires vocab_size, but the encoder has no vocabulary.
const std::string_view kClipLargeDefaults = R"({"hidden_act": "quick_gelu",
    "hidden_size": 1024,
    "image_size": 336,
    "intermediate_size": 4096,
    "layer_norm_eps": 1e-05,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 24,
    "patch_size": 14,
    "vocab_size": 1})";
const std::string_view kSiglipDefaults = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 768,
    "image_size": 224,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 12,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 16,
    "vocab_size": 1})";

namespace {

Result<Mlp> activation_of(const Config& config) {
  TRY(const std::string name, config.text("hidden_act"));
  if (name == "quick_gelu") return Mlp{.activation = Activation::sigmoid, .gate_scale = 1.702F};
  if (name == "gelu") return Mlp{.activation = Activation::gelu};
  if (name == "gelu_pytorch_tanh") return Mlp{.activation = Activation::gelu_tanh};
  return field_failure("hidden_act", ErrorCode::unsupported,
                       "{} is \"{}\", which is not supported: must be quick_gelu, gelu or gelu_pytorch_tanh",
                       config.where("hidden_act"), name);
}

Result<ModelSpec> describe_text(const Config& config) {
  TRY(const std::string kind, config.text("model_type", "llama"));
  if (kind == "llama" || kind == "llava") return describe_llama(config);
  if (kind == "mistral") return describe_mistral(config);
  if (kind == "qwen2" || kind == "internvl") return describe_qwen2(config);
  if (kind == "qwen3") return describe_qwen3(config);
  if (kind == "qwen3_moe") return describe_qwen3_moe(config);
  if (kind == "cohere2") return describe_cohere2(config);
  return field_failure(
      "model_type", ErrorCode::unsupported,
      "{} is \"{}\", which is not supported: must be cohere2, llama, mistral, qwen2, qwen3 or "
      "qwen3_moe",
      config.where("model_type"), kind);
}

Names tower_names() {
  Names names;
  names.encoder.patches = "embeddings.patch_embedding";
  names.encoder.class_token = "embeddings.class_embedding";
  names.embedding.positions = "embeddings.position_embedding";
  names.embedding.norm = "pre_layrnorm";
  names.layers = "encoder.layers.";
  names.attention.norm = "layer_norm1";
  names.mlp.norm = "layer_norm2";
  names.attention.out = "self_attn.out_proj";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.final_norm = "post_layernorm";
  return names;
}

Result<ModelSpec> describe_tower(const Config& config, ImageInput image) {
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .head_dim = "",
                                              .positions = "image_size",
                                              .activation = "",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = false}));
  spec.vocab = 0;
  TRY(image.image_size, config.integer("image_size", {1, 4096}));
  TRY(image.patch_size, config.integer("patch_size", {1, image.image_size}));
  TRY_VOID(config.integer("num_channels", {3, 3}));
  const int side = image.image_size / image.patch_size;
  spec.embedding.learned_positions = spec.max_positions = side * side + image.classes.count;
  spec.inputs.image = image;
  for (LayerSpec& layer : spec.layers) {
    layer.attention().mask.causal = false;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  TRY_VOID(set_activation(config, spec));
  spec.names = tower_names();
  return spec;
}

}  // namespace

void join_hearing(ModelSpec& text, ModelSpec&& tower) {
  text.names.prefixes = {"language_model.model."};
  text.names.lm_head = "language_model.lm_head";
  for (const char* other : {"audio_tower.*", "multi_modal_projector.*"})
    text.names.ignorable.emplace_back(other);
  tower.names.ignorable = {"language_model.*"};
  text.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
}

Result<ModelSpec> describe_seeing_text(const Config& config) {
  TRY(ModelSpec spec, describe_text(config));
  for (const char* other :
       {"vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*", "model.multi_modal_projector.*"})
    spec.names.ignorable.emplace_back(other);
  spec.names.prefixes = {"language_model.model."};
  spec.names.lm_head = "language_model.lm_head";
  spec.other_names = spec.names;
  spec.other_names->prefixes = {"model.language_model."};
  spec.other_names->lm_head = "lm_head";
  return spec;
}

Result<> set_tied(ModelSpec& spec, const Config& config) {
  const Config outer = config.outer();
  if (!outer.has("tie_word_embeddings")) return {};
  TRY(spec.logits.tied, outer.boolean("tie_word_embeddings"));
  return {};
}

Result<> set_activation(const Config& config, ModelSpec& spec) {
  TRY(const Mlp like, activation_of(config));
  for (LayerSpec& layer : spec.layers) {
    layer.mlp().gated = false;
    layer.mlp().activation = like.activation;
    layer.mlp().gate_scale = like.gate_scale;
  }
  return {};
}

Result<ModelSpec> describe_clip(Config config, std::string_view defaults) {
  config.set_defaults(defaults);
  TRY(ModelSpec spec, describe_tower(config, {.bias = false, .classes = {.count = 1}}));
  spec.embedding.norm = spec.final_norm;
  return spec;
}

Result<ModelSpec> describe_siglip(Config config, std::string_view defaults) {
  config.set_defaults(defaults);
  return describe_tower(config, {});
}

Result<ModelSpec> describe_siglip2(Config config) {
  config.set_defaults(R"({"hidden_act": "gelu_pytorch_tanh",
      "hidden_size": 768,
      "intermediate_size": 3072,
      "layer_norm_eps": 1e-06,
      "num_attention_heads": 12,
      "num_channels": 3,
      "num_hidden_layers": 12,
      "num_patches": 256,
      "patch_size": 16,
      "vocab_size": 1})");
  // the encoder ignores image_size, which must only be a valid size
  TRY(ModelSpec spec, describe_tower(config.with_names({{"image_size", "patch_size"}}),
                                     {.storage = PatchStorage::channels_last}));
  ImageInput& image = *spec.inputs.image;
  image.image_size = 0;
  image.grid.stretch = PositionStretch::antialiased;
  TRY(spec.embedding.learned_positions, config.integer("num_patches", {1, 1 << 20}));
  while ((image.grid.side + 1) * (image.grid.side + 1) <= spec.embedding.learned_positions) ++image.grid.side;
  if (image.grid.side * image.grid.side != spec.embedding.learned_positions)
    return invalid("num_patches", "{} is {}, but must be a square", config.where("num_patches"),
                   spec.embedding.learned_positions);
  spec.max_positions = 1;  // the image processor limits the number of patches
  return spec;
}

Result<> cut_tower(ModelSpec& tower, int layer, const std::string& where) {
  const int layers = static_cast<int>(tower.layers.size()), left = layers + 1 + layer;
  if (left < 1) return invalid("vision_config", "{} is {}, which leaves no layer", where, layer);
  tower.layers.resize(static_cast<std::size_t>(left));
  for (int i = left; i < layers; ++i) tower.names.ignorable.push_back(fmt::format("encoder.layers.{}.*", i));
  tower.final_norm = {};
  return {};
}

}  // namespace octavo
