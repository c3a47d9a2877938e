// Idefics3 (Laurençon et al., 2024) and SmolVLM (Marafioti et al., 2025): a SigLIP encoder (Zhai et al., 2023), a
// pixel shuffle and one matrix in front of a Llama.
#include "kernels/sampling_math.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr std::string_view kVisionDefaults = R"({"hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "image_size": 224,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-06,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 32,
    "vocab_size": 1})";  // which it has not

Names siglip_names() {
  Names names;
  names.prefixes = {"model.vision_model."};
  names.patches = "embeddings.patch_embedding";
  names.positions = "embeddings.position_embedding";
  names.layers = "encoder.layers.";
  names.attention_norm = "layer_norm1";
  names.mlp_norm = "layer_norm2";
  names.out = "self_attn.out_proj";
  names.up = {"mlp.fc1"};
  names.down = "mlp.fc2";
  names.final_norm = "post_layernorm";
  names.projector = "model.connector.modality_projection.proj";
  names.ignorable = {"model.text_model.*", "lm_head.*", "*.position_ids"};
  return names;
}

Result<ModelSpec> describe_siglip(Config config) {
  config.set_defaults(kVisionDefaults);
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .head_dim = "",
                                              .positions = "image_size",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = false}));
  spec.vocab = 0;
  ImageInput image;
  TRY(image.image_size, config.integer("image_size", {1, 4096}));
  TRY(image.patch_size, config.integer("patch_size", {1, image.image_size}));
  TRY_VOID(config.integer("num_channels", {3, 3}));
  spec.learned_positions = spec.max_positions = image.patches();
  spec.image = image;
  for (LayerSpec& layer : spec.layers) {
    layer.attention().causal = false;
    layer.attention().qkv_bias = layer.attention().out_bias = true;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  spec.names = siglip_names();
  return spec;
}

}  // namespace

Result<ModelSpec> describe_idefics3(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  spec.names.prefixes = {"model.text_model."};
  for (const char* other : {"model.vision_model.*", "model.connector.*"})
    spec.names.ignorable.emplace_back(other);
  TRY(spec.image_token, config.integer("image_token_id", {0, kMaxVocab}, 128257));
  TRY(const std::optional<Config> vision, config.object("vision_config"));
  TRY(ModelSpec tower, describe_siglip(vision.value_or(Config())));
  TRY(tower.image->merge, config.integer("scale_factor", {1, 64}, 2));
  tower.image->out_dim = spec.dim;
  spec.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace octavo
