// Gemma 4 (Google DeepMind, 2026), its language model: heads of two sizes, layers that read the keys and values of
// others, a vector of each token for each layer.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr Dialect kGemma4{.activation = "hidden_activation", .rotary = false};

// The last layer before `first` that sees as far as this one.
Result<int> source_of(const ModelSpec& spec, int layer, int first) {
  const int window = spec.layers[static_cast<std::size_t>(layer)].attention().window;
  for (int i = first - 1; i >= 0; --i)
    if (spec.layers[static_cast<std::size_t>(i)].attention().window == window) return i;
  return invalid("num_kv_shared_layers", "config.json: no layer before {} has the attention of layer {}", first, layer);
}

// Full attention has heads of its own: in fields of their own, or as transformers writes them, layer by layer.
Result<Attention> full_attention(const ModelSpec& spec, const Config& config) {
  Attention full = spec.layers[0].attention();
  TRY(full.keys_are_values, config.boolean("attention_k_eq_v", false));
  TRY(const std::optional<Config> by_layer, config.object("per_layer_config"));
  for (std::size_t i = 0; by_layer && i < spec.layers.size(); ++i) {
    TRY(const std::optional<Config> own, by_layer->object(fmt::format("{}", i)));
    if (!own) continue;
    TRY(full.head_dim, own->integer("head_dim", {1, 1 << 16}, full.head_dim));
    TRY(full.kv_heads, own->integer("num_key_value_heads", {1, full.q_heads}, full.kv_heads));
    return full;
  }
  TRY(full.head_dim, config.integer("global_head_dim", {1, 1 << 16}, 512));
  if (full.keys_are_values) {
    TRY(full.kv_heads, config.integer("num_global_key_value_heads", {1, full.q_heads}, full.kv_heads));
  }
  return full;
}

// It sees with a rotary embedding that turns a part of each head.
Result<> set_attention(ModelSpec& spec, const Config& config) {
  TRY_VOID(set_windows(spec, config, [](int layer) { return (layer + 1) % 6 != 0; }));
  spec.layers.back().attention().window = 0;
  TRY(const Attention full, full_attention(spec, config));
  const int sliding_dim = spec.layers[0].attention().head_dim;
  TRY(RopeSpec turns, read_rope(config, kGemma4, full.head_dim, spec.max_positions, "full_attention"));
  TRY(RopeSpec slides, read_rope(config, kGemma4, sliding_dim, spec.max_positions, "sliding_attention"));
  spec.ropes = {std::move(turns), std::move(slides)};
  for (LayerSpec& layer : spec.layers) {
    Attention& a = layer.attention();
    const int window = a.window;
    if (window == 0) a = full;
    a.window = window;
    a.rope = window == 0 ? 0 : 1;
    a.scale = 1;
    a.qk_norm = QkNorm::shared;
    a.qk_norm_spec = a.v_norm = layer.pre_norm;
    a.v_norm.stored = false;
  }
  return {};
}

// The last layers have no keys and values of their own.
Result<> set_sources(ModelSpec& spec, const Config& config) {
  const int layers = static_cast<int>(std::ssize(spec.layers));
  TRY(const int shared, config.integer("num_kv_shared_layers", {0, layers - 1}, 0));
  TRY(const bool wide, config.boolean("use_double_wide_mlp", false));
  for (int i = layers - shared; i < layers; ++i) {
    LayerSpec& layer = spec.layers[static_cast<std::size_t>(i)];
    TRY(layer.attention().source, source_of(spec, i, layers - shared));
    layer.attention().keys_are_values = false;
    if (wide) layer.mlp().hidden *= 2;
    for (const char* unused : {"k_proj", "v_proj", "k_norm"})
      spec.names.ignorable.push_back(fmt::format("*layers.{}.self_attn.{}.weight", i, unused));
  }
  return {};
}

Result<> set_layer_inputs(ModelSpec& spec, const Config& config) {
  TRY(const int size, config.integer("hidden_size_per_layer_input", {0, 1 << 16}, 0));
  if (size == 0) return {};
  TRY(const int vocab, config.integer("vocab_size_per_layer_input", {1, kMaxVocab}));
  if (vocab != spec.vocab)
    return field_failure("vocab_size_per_layer_input", ErrorCode::unsupported,
                         "{} is {}, vocab_size {}: this is not supported", config.where("vocab_size_per_layer_input"),
                         vocab, spec.vocab);
  spec.layer_inputs = {.size = size, .norm = spec.final_norm, .activation = spec.layers[0].mlp().activation};
  spec.layer_inputs->norm.eps *= static_cast<float>(spec.dim);  // of what is divided by the root of dim
  return {};
}

}  // namespace

Result<ModelSpec> describe_gemma4(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, kGemma4));
  TRY_VOID(refuse(config, "enable_moe_block", true));
  TRY_VOID(refuse(config, "attention_bias", true));
  TRY(const std::string both_ways, config.text("use_bidirectional_attention", ""));
  if (both_ways == "all")
    return field_failure("use_bidirectional_attention", ErrorCode::unsupported,
                         "{} is \"all\"; only causal attention is supported",
                         config.where("use_bidirectional_attention"));
  spec.embed_scale = std::sqrt(static_cast<float>(spec.dim));
  spec.embed_scale_rounds = true;
  TRY(spec.logits_soft_cap, soft_cap(config, "final_logit_softcapping"));
  TRY_VOID(set_attention(spec, config));
  TRY_VOID(set_sources(spec, config));
  TRY_VOID(set_layer_inputs(spec, config));
  for (LayerSpec& layer : spec.layers) {
    layer.post_norm = layer.pre_norm;
    layer.scaled = true;
  }
  spec.names.attention_post_norm = "post_attention_layernorm";
  spec.names.mlp_norm = "pre_feedforward_layernorm";
  spec.names.mlp_post_norm = "post_feedforward_layernorm";
  spec.names.prefixes = {"model.", "model.language_model.", "language_model.model."};
  for (const char* other : {"vision_tower", "audio_tower", "embed_vision", "embed_audio"})
    spec.names.ignorable.push_back(fmt::format("model.{}.*", other));
  return spec;
}

}  // namespace octavo
