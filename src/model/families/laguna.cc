// Laguna (Poolside, 2026): softplus gates after attention, and another number of query heads in each layer.
// Most layers have a sliding window and a separate RoPE. The experts are DeepSeek-V3's with a shared expert.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

Result<> set_laguna_heads(ModelSpec& spec, const Config& config) {
  TRY(const std::vector<int> heads, config.integers("num_attention_heads_per_layer", kHeads));
  if (!heads.empty() && heads.size() != spec.layers.size())
    return invalid("num_attention_heads_per_layer", "{} has {} entries, but the model has {} layers",
                   config.where("num_attention_heads_per_layer"), heads.size(), spec.layers.size());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Attention& attention = spec.layers[i].attention();
    attention.q_heads = heads[i];
    if (heads[i] % attention.kv_heads != 0)
      return invalid("num_attention_heads_per_layer",
                     "{}: {} query heads must be a multiple of num_key_value_heads {}",
                     config.where("num_attention_heads_per_layer"), heads[i], attention.kv_heads);
  }
  return {};
}

// The field is a boolean (true: a gate per head), "per-head" or "per-element".
Result<> set_laguna_gates(ModelSpec& spec, const Config& config) {
  constexpr std::string_view kField = "gating";
  std::string gating;
  if (const auto on = config.boolean(kField, true)) {
    if (!*on) return {};
    gating = "per-head";
  } else {
    TRY(gating, config.text(kField));
  }
  if (gating != "per-head" && gating != "per-element")
    return field_failure(kField, ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be per-head or per-element",
                         config.where(kField), gating);
  for (LayerSpec& layer : spec.layers) {
    Attention& attention = layer.attention();
    attention.gate = Activation::softplus;
    (gating == "per-head" ? attention.head_gate : attention.output_gate) = true;
  }
  if (gating == "per-element") spec.names.attention.qkv.emplace_back("self_attn.g_proj");
  return {};
}

}  // namespace

static Result<ModelSpec> describe_laguna(const Config& file) {
  const Config config = file.with_names(
      {{"n_routed_experts", "num_experts"}, {"routed_scaling_factor", "moe_routed_scaling_factor"}});
  TRY_VOID(refuse(config, "attention_bias", true));
  TRY_VOID(refuse(config, "moe_apply_router_weight_on_input", true));
  if (config.has("swa_rope_parameters"))
    return field_failure("swa_rope_parameters", ErrorCode::unsupported,
                         "{} is not supported: write rope_parameters with an object for each type of layer",
                         config.where("swa_rope_parameters"));
  TRY(const float cap, soft_cap(config, "moe_router_logit_softcapping"));
  if (cap > 0)
    return field_failure("moe_router_logit_softcapping", ErrorCode::unsupported,
                         "{} is {}, which is not supported: must be 0",
                         config.where("moe_router_logit_softcapping"), cap);
  const Dialect dialect{.rotary_fraction = "partial_rotary_factor"};
  TRY(ModelSpec spec, describe_dense(config, dialect));
  TRY_VOID(set_windows(spec, config, [](int) { return false; }));
  TRY_VOID(set_ropes_by_kind(spec, config, dialect));
  TRY_VOID(set_laguna_heads(spec, config));
  TRY(const bool sinks, config.boolean("swa_attention_sink_enabled", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().norms = {.qk_kind = QkNorm::shared, .qk = layer.pre_norm};
    layer.attention().scores.sinks = sinks && layer.attention().mask.window > 0;
  }
  TRY_VOID(set_laguna_gates(spec, config));
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  spec.predictor.reset();
  TRY(const int shared, config.integer("shared_expert_intermediate_size", {0, 1 << 20}));
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) {
      experts->router.renormalise = true;
      if (shared == 0) continue;
      experts->shared = experts->expert;
      experts->shared->hidden = shared;
    }
  spec.names.attention.sinks = "self_attn.sink";
  Experts::Names& names = spec.names.of<Experts>();
  names.choice_bias = "mlp.experts.e_score_correction_bias";
  names.shared_up = {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"};
  names.shared_down = "mlp.shared_expert.down_proj";
  return spec;
}

std::span<const Family> laguna_families() {
  static constexpr Family kRows[] = {{"LagunaForCausalLM", describe_laguna}};
  return kRows;
}

}  // namespace octavo
