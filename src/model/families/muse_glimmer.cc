// Muse Glimmer (Meta, 2026): norms before and after attention and the MLP, norms of the embedding, of queries
// and of keys without weights, and gates after attention. Three of four layers have a sliding window; the
// others have no RoPE. Images are not supported.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Removes RoPE from the layers whose base is 0. Without the list layer_rope_theta, these are the layers with
// full attention of the default pattern, counted from the last layer.
Result<> set_muse_ropes(ModelSpec& spec, const Config& config) {
  const std::size_t layers = spec.layers.size();
  constexpr std::string_view kField = "layer_rope_theta";
  if (!config.is_list(kField)) {
    for (std::size_t i = layers % 4 == 0 ? 3 : layers % 4 - 1; i < layers; i += 4)
      spec.layers[i].attention().rope = -1;
    return {};
  }
  TRY(const std::vector<double> bases, config.numbers(kField, layers, {0, 1e12}));
  for (std::size_t i = 0; i < layers; ++i) {
    if (bases[i] == 0)
      spec.layers[i].attention().rope = -1;
    else if (bases[i] != spec.ropes[0].theta)
      return field_failure(kField, ErrorCode::unsupported,
                           "{} has {}, which is not supported: must be 0 or rope_theta {}",
                           config.where(kField), bases[i], spec.ropes[0].theta);
  }
  return {};
}

}  // namespace

static Result<ModelSpec> describe_muse_glimmer(const Config& config) {
  TRY_VOID(refuse(config, "attention_bias", true));
  TRY(ModelSpec spec, describe_dense(config, {.activation = "hidden_activation",
                                              .norm = {.kind = NormKind::rms, .weight_offset = 1}}));
  const int layers = static_cast<int>(spec.layers.size());
  TRY_VOID(set_windows(spec, config, [layers](int layer) { return (layers - 1 - layer) % 4 != 0; }));
  TRY_VOID(set_muse_ropes(spec, config));
  TRY(const double post_eps, config.number("post_norm_eps", {0, 1}));
  TRY(const float query_scale, multiplier(config, "qk_scale_factor"));
  NormSpec plain{.kind = NormKind::rms, .eps = spec.final_norm.eps, .stored = false};
  for (LayerSpec& layer : spec.layers) {
    layer.post_norm = layer.pre_norm;
    layer.post_norm.eps = static_cast<float>(post_eps);
    layer.attention().norms = {.qk_kind = QkNorm::shared, .qk = plain};
    layer.attention().scores.scale *= query_scale;
    layer.attention().output_gate = true;
  }
  spec.embedding.norm = plain;
  spec.final_norm.weight_offset = 0;
  TRY(spec.logits.scale, multiplier(config, "output_multiplier"));
  TRY(spec.logits.soft_cap, soft_cap(config, "final_logit_softcapping"));
  Names& names = spec.names;
  names.prefixes = {"model.language_model.", "model."};
  names.attention.qkv.emplace_back("self_attn.gate_proj");
  names.attention.post_norm = "post_attention_layernorm";
  names.mlp.norm = "pre_feedforward_layernorm";
  names.mlp.post_norm = "post_feedforward_layernorm";
  for (const char* other : {"model.vision_tower.*", "model.vision_adapter.*", "model.vision_projection.*",
                            "model.perception_emb_norm.*"})
    names.ignorable.emplace_back(other);
  return spec;
}

std::span<const Family> muse_glimmer_families() {
  static constexpr Family kRows[] = {
      {"MuseGlimmerForCausalLM", describe_muse_glimmer, true},
      {"MuseGlimmerForConditionalGeneration", describe_muse_glimmer, true},
  };
  return kRows;
}

}  // namespace octavo
