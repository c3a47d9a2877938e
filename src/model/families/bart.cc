// BART (Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training", 2020): an encoder of prompts and a
// decoder. The decoder's layers have cross attention to the encoder's rows between self-attention and MLP.
// Encoder and decoder have learned positions, and norms after the residual. mBART (Liu et al., "Multilingual
// Denoising Pre-training for Neural Machine Translation", 2020) has norms before attention and MLP, and one
// norm after the layers.
#include <cmath>
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr int kPositionOffset = 2;  // row of the position table for the first token

enum class NormPosition : std::uint8_t { after, before };

Names bart_names(const std::string& half, NormPosition norms) {
  Names names;
  names.prefixes = {"model.", ""};
  names.logits_bias = "final_logits_bias";
  names.embedding.tokens = "shared";
  names.embedding.positions = half + "embed_positions";
  names.embedding.norm = half + "layernorm_embedding";
  names.layers = half + "layers.";
  const bool before = norms == NormPosition::before;
  if (before) names.final_norm = half + "layer_norm";
  (before ? names.attention.norm : names.attention.post_norm) = "self_attn_layer_norm";
  (before ? names.of<CrossAttention>().norm : names.of<CrossAttention>().post_norm) =
      "encoder_attn_layer_norm";
  (before ? names.mlp.norm : names.mlp.post_norm) = "final_layer_norm";
  names.attention.out = "self_attn.out_proj";
  names.mlp.up = {"fc1"};
  names.mlp.down = "fc2";
  names.of<CrossAttention>().q = "encoder_attn.q_proj";
  names.of<CrossAttention>().kv = {"encoder_attn.k_proj", "encoder_attn.v_proj"};
  names.of<CrossAttention>().out = "encoder_attn.out_proj";
  return names;
}

// Names of the fields for the encoder or the decoder.
struct Half {
  std::string_view layers, heads, hidden;
  bool causal = false;
};
constexpr Half kEncoder{"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"};
constexpr Half kDecoder{"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim", true};

Result<ModelSpec> describe_half(const Config& config, const Half& half, NormPosition norms) {
  TRY(ModelSpec spec, describe_dense(config, {.dim = "d_model",
                                              .layers = half.layers,
                                              .heads = half.heads,
                                              .kv_heads = half.heads,
                                              .hidden = half.hidden,
                                              .head_dim = "",
                                              .activation = "activation_function",
                                              .eps = "",
                                              .norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                                              .rotary = false}));
  TRY(const bool scaled, config.boolean("scale_embedding", false));
  if (scaled) spec.embedding.scale = std::sqrt(static_cast<float>(spec.dim));
  spec.embedding.learned_positions = spec.max_positions + kPositionOffset;
  spec.embedding.first_position = kPositionOffset;
  spec.embedding.norm = spec.final_norm;
  if (norms == NormPosition::after) spec.final_norm = {};
  for (LayerSpec& layer : spec.layers) {
    if (norms == NormPosition::after) {
      layer.residual = Residual::post_norm;
      layer.post_norm = std::exchange(layer.pre_norm, {});
    }
    layer.attention().mask.causal = half.causal;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  return spec;
}

Result<ModelSpec> describe_both(const Config& config, NormPosition norms) {
  TRY(ModelSpec spec, describe_half(config, kDecoder, norms));
  TRY(ModelSpec tower, describe_half(config, kEncoder, norms));
  const Attention& own = spec.layers[0].attention();
  for (LayerSpec& layer : spec.layers)
    layer.cross = CrossAttention{.heads = own.q_heads,
                                 .head_dim = own.head_dim,
                                 .scale = own.scores.scale,
                                 .bias = true,
                                 .k_bias = true};
  TRY(tower.inputs.source, read_source(config, tower));
  spec.logits.bias = true;
  spec.names = bart_names("decoder.", norms);
  spec.names.ignorable = {"model.encoder.*", "encoder.*", "model.decoder.embed_tokens.weight",
                          "decoder.embed_tokens.weight"};
  tower.logits.tied = true;  // the encoder has no output matrix
  tower.names = bart_names("encoder.", norms);
  tower.names.ignorable = {"model.decoder.*", "decoder.*", "model.encoder.embed_tokens.weight",
                           "encoder.embed_tokens.weight", "final_logits_bias"};
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_bart(const Config& config) {
  return describe_both(config, NormPosition::after);
}
static Result<ModelSpec> describe_mbart(const Config& config) {
  return describe_both(config, NormPosition::before);
}

std::span<const Family> bart_families() {
  static constexpr Family kRows[] = {
      {"BartForConditionalGeneration", describe_bart},
      {"MBartForConditionalGeneration", describe_mbart},
  };
  return kRows;
}

}  // namespace octavo
