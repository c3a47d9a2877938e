// Gemma 1, 2 and 3 (Google DeepMind, 2024 and 2025).
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Dialect kGemma1{.norm = {.kind = NormKind::rms, .weight_offset = 1}};
constexpr Dialect kLaterGemma{.activation = "hidden_activation", .norm = kGemma1.norm};

Result<ModelSpec> describe_any_gemma(const Config& config, const Dialect& dialect) {
  TRY(ModelSpec spec, describe_dense(config, dialect));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) layer.attention().biases = {.qkv = bias, .out = bias};
  spec.embedding.scale = std::sqrt(static_cast<float>(spec.dim));
  spec.embedding.scale_rounds = true;
  return spec;
}

// Gemma 2 and 3 have norms before and after attention and the MLP, a configured scale of attention scores,
// and a soft cap on logits.
Result<ModelSpec> describe_later_gemma(const Config& config) {
  TRY(ModelSpec spec, describe_any_gemma(config, kLaterGemma));
  TRY(spec.logits.soft_cap, soft_cap(config, "final_logit_softcapping"));
  TRY(const float scalar, multiplier(config, "query_pre_attn_scalar"));
  for (LayerSpec& layer : spec.layers) {
    layer.post_norm = layer.pre_norm;
    layer.attention().scores.scale = 1 / std::sqrt(scalar);
  }
  spec.names.attention.post_norm = "post_attention_layernorm";
  spec.names.mlp.norm = "pre_feedforward_layernorm";
  spec.names.mlp.post_norm = "post_feedforward_layernorm";
  return spec;
}

}  // namespace

Result<ModelSpec> describe_gemma(const Config& config) {
  TRY_VOID(refuse(config, "use_bidirectional_attention", true));
  TRY(ModelSpec spec, describe_any_gemma(config, kGemma1));
  // The first config.json files say "gelu", but the models use its tanh approximation.
  for (LayerSpec& layer : spec.layers)
    if (layer.mlp().activation == Activation::gelu) layer.mlp().activation = Activation::gelu_tanh;
  return spec;
}

Result<ModelSpec> describe_gemma2(const Config& config) {
  TRY_VOID(refuse(config, "use_bidirectional_attention", true));
  TRY(ModelSpec spec, describe_later_gemma(config));
  TRY(const float score_cap, soft_cap(config, "attn_logit_softcapping"));
  for (LayerSpec& layer : spec.layers) layer.attention().scores.soft_cap = score_cap;
  TRY_VOID(set_windows(spec, config, [](int layer) { return layer % 2 == 0; }));
  return spec;
}

// VaultGemma (2025) is Gemma 2 without norms after attention and the MLP.
static Result<ModelSpec> describe_vault_gemma(const Config& config) {
  TRY(ModelSpec spec, describe_gemma2(config));
  for (LayerSpec& layer : spec.layers) layer.post_norm = {};
  return spec;
}

Result<ModelSpec> describe_gemma3(const Config& config) {
  TRY(ModelSpec spec, describe_later_gemma(config));
  TRY(const int pattern, config.integer("sliding_window_pattern", {1, 1024}, 6));
  TRY_VOID(set_windows(spec, config, [pattern](int layer) { return (layer + 1) % pattern != 0; }));
  // There are two rotary embeddings. Layers with full attention have lower frequencies, and only their
  // frequencies are scaled.
  TRY(spec.max_positions, config.integer("max_position_embeddings", {1, 1 << 27}));
  const int head_dim = spec.layers[0].attention().head_dim;
  Dialect dialect = kLaterGemma;
  TRY(spec.ropes[0], read_rope(config, dialect, head_dim, spec.max_positions, "full_attention"));
  dialect.theta = "rope_local_base_freq";
  TRY(RopeSpec local, read_rope(config, dialect, head_dim, spec.max_positions, "sliding_attention"));
  spec.ropes.push_back(local);
  for (LayerSpec& layer : spec.layers) {
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
    layer.attention().rope = layer.attention().mask.window > 0 ? 1 : 0;
  }
  // EmbeddingGemma (2025): tokens see half of the window on each side.
  TRY(const bool both_ways, config.boolean("use_bidirectional_attention", false));
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    attention.mask.causal = !both_ways;
    if (both_ways && attention.mask.window > 0) attention.mask.window = attention.mask.window / 2 + 1;
  }
  // Multi-modal checkpoints also contain a vision encoder, and the language model has another prefix.
  spec.names.prefixes = {"model.", "model.language_model.", "language_model.model."};
  for (const char* other : {"vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*",
                            "model.multi_modal_projector.*"}) {
    spec.names.ignorable.emplace_back(other);
  }
  return spec;
}

std::span<const Family> gemma_families() {
  static constexpr Family kRows[] = {
      {"Gemma2ForCausalLM", describe_gemma2},
      {"Gemma2Model", describe_embedder<describe_gemma2>},
      {"Gemma3ForCausalLM", describe_gemma3},
      {"Gemma3TextModel", describe_embedder<describe_gemma3>},
      {"GemmaForCausalLM", describe_gemma},
      {"GemmaForSequenceClassification", describe_decoder_classifier<describe_gemma>},
      {"Rnj1ForCausalLM", describe_gemma3},
      {"VaultGemmaForCausalLM", describe_vault_gemma},
  };
  return kRows;
}

}  // namespace octavo
