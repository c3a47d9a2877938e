// Beam (Reflection, 2026): gates with biases after attention, norms before and after attention and the MLP,
// and residuals that are weighted by depth. Layers with full attention have no RoPE; their queries grow with
// the position. The experts are DeepSeek-V3's without shared experts.
#include <cmath>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Addition n of the network, counted from 1, computes x * sqrt((n - 1) / n) + y * sqrt(1 / n), where x is the
// residual. The embedding is n = 1.
void set_depth_scales(ModelSpec& spec) {
  double n = 1;
  for (LayerSpec& layer : spec.layers) {
    for (auto [half, all] : {std::pair{&layer.scales.mixer, &layer.scales.mixed},
                             std::pair{&layer.scales.feed_forward, &layer.scales.passed}}) {
      ++n;
      *half = static_cast<float>(1 / std::sqrt(n - 1));
      *all = static_cast<float>(std::sqrt((n - 1) / n));
    }
  }
}

}  // namespace

static Result<ModelSpec> describe_beam(const Config& file) {
  const Config config = file.with_names({{"n_routed_experts", "num_experts"}});
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_windows(spec, config, [](int) { return true; }));
  // rope_parameters may have an entry for the layers with windows.
  TRY(const std::optional<Config> ropes, config.object("rope_parameters"));
  if (ropes && ropes->has("sliding_attention")) {
    TRY(spec.ropes[0],
        read_rope(config, {}, spec.layers[0].attention().head_dim, spec.max_positions, "sliding_attention"));
  }
  spec.temperature = {.power = 0.1, .length = 2048, .shift = 1};
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    layer.post_norm = layer.pre_norm;
    attention.norms = {.qk_kind = QkNorm::shared, .qk = layer.pre_norm};
    attention.output_gate = attention.biases.gate = true;
    if (attention.mask.window > 0) continue;
    attention.rope = -1;
    attention.scores.temperature = true;
  }
  set_depth_scales(spec);
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  spec.predictor.reset();
  TRY(spec.logits.soft_cap, soft_cap(config, "final_logit_softcapping"));
  Names& names = spec.names;
  names.attention.qkv.emplace_back("self_attn.gate_proj");
  names.attention.gate_bias = "self_attn.gate_bias";
  names.attention.post_norm = "post_attention_layernorm";
  names.mlp.norm = "pre_feedforward_layernorm";
  names.mlp.post_norm = "post_feedforward_layernorm";
  return spec;
}

std::span<const Family> beam_families() {
  static constexpr Family kRows[] = {{"BeamForCausalLM", describe_beam}};
  return kRows;
}

}  // namespace octavo
