// Trinity (Arcee, 2025): gates after attention, norms before and after attention and the MLP, DeepSeek-V3's
// experts. Three of four layers have a sliding window; the fourth has no RoPE.
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_afmoe(const Config& file) {
  const Config config = file.with_names({{"first_k_dense_replace", "num_dense_layers"},
                                         {"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"norm_topk_prob", "route_norm"},
                                         {"routed_scaling_factor", "route_scale"},
                                         {"scoring_func", "score_func"}});
  TRY(ModelSpec spec, describe_llama(config));
  TRY(const int interval, config.integer("global_attn_every_n_layers", {1, 1024}));
  TRY_VOID(set_windows(spec, config, [interval](int layer) { return (layer + 1) % interval != 0; }));
  TRY(const bool scaled, config.boolean("mup_enabled", false));
  if (scaled) spec.embedding.scale = std::sqrt(static_cast<float>(spec.dim));
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    if (attention.mask.window == 0) attention.rope = -1;
    attention.norms.qk_kind = QkNorm::shared;
    attention.norms.qk = layer.post_norm = layer.pre_norm;
    attention.output_gate = true;
  }
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  spec.predictor.reset();
  Names& names = spec.names;
  names.attention.post_norm = "post_attention_layernorm";
  names.mlp.norm = "pre_mlp_layernorm";
  names.mlp.post_norm = "post_mlp_layernorm";
  names.attention.qkv.emplace_back("self_attn.gate_proj");
  names.of<Experts>().router = "mlp.router.gate";
  names.of<Experts>().choice_bias = "mlp.expert_bias";
  return spec;
}

std::span<const Family> afmoe_families() {
  static constexpr Family kRows[] = {{"AfmoeForCausalLM", describe_afmoe}};
  return kRows;
}

}  // namespace octavo
