// Whisper (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022): an encoder of
// log-mel spectrograms after two convolutions, and a decoder whose layers have cross attention to the
// encoder's rows between self-attention and MLP. Both have tables of positions, and keys have no bias.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/towers.h"

namespace octavo {
namespace {

Names whisper_names(const std::string& prefix) {
  Names names;
  names.prefixes = {prefix};
  names.lm_head = "proj_out";
  names.embedding.positions = "embed_positions";
  names.final_norm = "layer_norm";
  names.attention.norm = "self_attn_layer_norm";
  names.mlp.norm = "final_layer_norm";
  names.attention.out = "self_attn.out_proj";
  names.mlp.up = {"fc1"};
  names.mlp.down = "fc2";
  names.of<CrossAttention>().norm = "encoder_attn_layer_norm";
  names.of<CrossAttention>().q = "encoder_attn.q_proj";
  names.of<CrossAttention>().kv = {"encoder_attn.k_proj", "encoder_attn.v_proj"};
  names.of<CrossAttention>().out = "encoder_attn.out_proj";
  names.encoder.convolutions = {"conv1", "conv2"};
  return names;
}

// Names of the fields for the encoder or the decoder.
struct WhisperHalf {
  std::string_view layers, heads, hidden, positions;
};

Result<ModelSpec> describe_half(const Config& config, const WhisperHalf& half) {
  TRY(ModelSpec spec, describe_dense(config, {.dim = "d_model",
                                              .layers = half.layers,
                                              .heads = half.heads,
                                              .kv_heads = half.heads,
                                              .hidden = half.hidden,
                                              .head_dim = "",
                                              .positions = half.positions,
                                              .activation = "activation_function",
                                              .eps = "",
                                              .norm = {.kind = NormKind::layer, .eps = 1e-5F, .bias = true},
                                              .rotary = false}));
  spec.embedding.learned_positions = spec.max_positions;
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = true, .out = true};
    layer.attention().biases.k = false;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  return spec;
}

}  // namespace

Result<ModelSpec> describe_whisper_encoder(const Config& config, const std::string& prefix) {
  TRY(ModelSpec tower, describe_half(config, {.layers = "encoder_layers",
                                              .heads = "encoder_attention_heads",
                                              .hidden = "encoder_ffn_dim",
                                              .positions = "max_source_positions"}));
  for (LayerSpec& layer : tower.layers) layer.attention().mask.causal = false;
  SoundInput sound{.rows = tower.max_positions};
  TRY(sound.mels, config.integer("num_mel_bins", {1, 1024}));
  tower.vocab = 0;
  tower.inputs.sound = sound;
  tower.names = whisper_names(prefix);
  return tower;
}

static Result<ModelSpec> describe_whisper(const Config& config) {
  TRY(ModelSpec spec, describe_half(config, {.layers = "decoder_layers",
                                             .heads = "decoder_attention_heads",
                                             .hidden = "decoder_ffn_dim",
                                             .positions = "max_target_positions"}));
  TRY(ModelSpec tower, describe_whisper_encoder(config, "model.encoder."));
  TRY(const bool scaled, config.boolean("scale_embedding", false));
  if (scaled) spec.embedding.scale = std::sqrt(static_cast<float>(spec.dim));
  if (tower.max_positions < spec.max_positions)
    return field_failure("max_source_positions", ErrorCode::unsupported,
                         "{} is {}, but must be at least max_target_positions {}",
                         config.where("max_source_positions"), tower.max_positions, spec.max_positions);
  for (LayerSpec& layer : spec.layers) {
    const Attention& own = layer.attention();
    layer.cross = CrossAttention{.heads = own.q_heads, .head_dim = own.head_dim, .scale = own.scores.scale};
  }
  spec.names = whisper_names("model.decoder.");
  spec.names.ignorable = {"model.encoder.*"};
  tower.names.ignorable = {"model.decoder.*"};
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec;
}

std::span<const Family> whisper_families() {
  static constexpr Family kRows[] = {{"WhisperForConditionalGeneration", describe_whisper}};
  return kRows;
}

}  // namespace octavo
