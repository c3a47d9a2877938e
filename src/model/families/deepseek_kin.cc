// Networks that differ little from DeepSeek-V3. A.X K1 (SK Telecom, 2026) has a norm after the experts.
// Sarvam 105B (2026) has Ling's field names. openPangu Ultra (Huawei, 2025) has norms before and after
// attention and the MLP.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Unlike in DeepSeek's models, the norms of the latents have the same epsilon as all norms.
void share_epsilon(ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) std::get<LatentAttention>(layer.mixer).norm = spec.final_norm;
}

void set_choice_bias(ModelSpec& spec, bool biased) {
  for (LayerSpec& layer : spec.layers)
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward)) experts->choice_bias = biased;
}

}  // namespace

static Result<ModelSpec> describe_axk1(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  TRY(const std::string method, config.text("topk_method", "noaux_tc"));
  set_choice_bias(spec, std::string_view(method) == "noaux_tc");
  for (LayerSpec& layer : spec.layers)
    if (std::holds_alternative<Experts>(layer.feed_forward)) layer.post_norm = layer.pre_norm;
  spec.names.mlp.post_norm = "post_mlp_layernorm";
  // Dense layers also have this tensor, which is unused.
  spec.names.ignorable.emplace_back("*.post_mlp_layernorm.weight");
  return spec;
}

static Result<ModelSpec> describe_sarvam_mla(const Config& file) {
  const Config config = file.with_names({{"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"scoring_func", "score_function"}});
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  share_epsilon(spec);
  TRY(const bool biased, config.boolean("moe_router_enable_expert_bias", true));
  set_choice_bias(spec, biased);
  TRY_VOID(set_shared_width(spec, config));
  return spec;
}

// Sets the bias of the router and the norms after both halves of a layer.
static Result<> set_pangu_layers(ModelSpec& spec, const Config& config) {
  TRY(const bool biased, config.boolean("router_enable_expert_bias", false));
  set_choice_bias(spec, biased);
  spec.names.of<Experts>().choice_bias = "mlp.e_score_correction_bias";
  TRY(const bool sandwich, config.boolean("sandwich_norm", false));
  if (!sandwich) return {};
  for (LayerSpec& layer : spec.layers) layer.post_norm = layer.pre_norm;
  spec.names.attention.post_norm = "post_attention_layernorm";
  spec.names.mlp.norm = "pre_mlp_layernorm";
  spec.names.mlp.post_norm = "post_mlp_layernorm";
  return {};
}

static Result<ModelSpec> describe_pangu_ultra(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  share_epsilon(spec);
  TRY_VOID(set_pangu_layers(spec, config));
  return spec;
}

// Reads the attention of openPangu Pro 2: keys are normalised, values may be narrower, and every query sees
// the same param_sink_number additional keys.
static Result<Attention> read_pangu_attention(const Config& config, Attention attention,
                                              const NormSpec& norm) {
  TRY(const int plain, config.integer("qk_nope_dim", {0, 4096}));
  TRY(const int rotated, config.integer("qk_rope_dim", {2, 4096}));
  attention.head_dim = plain + rotated;
  attention.scores.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.head_dim)));
  TRY(const int value_dim, config.integer("v_channels", {1, attention.head_dim}));
  if (value_dim < attention.head_dim) attention.value_dim = value_dim;
  attention.norms = {.qk_kind = QkNorm::shared, .qk = norm, .k_only = true};
  TRY(attention.scores.fixed_keys, config.integer("param_sink_number", {0, kMaxFixedKeys}, 0));
  TRY(attention.scores.fixed_values, config.boolean("param_sink_with_value", false));
  TRY(const bool bias, config.boolean("bias", false));
  TRY(attention.biases.out, config.boolean("attention_bias", bias));
  TRY(attention.biases.qkv, config.boolean("qkv_bias", attention.biases.out));
  return attention;
}

// openPangu Pro 2 (Huawei, 2026): the experts of openPangu Ultra with grouped-query attention.
static Result<ModelSpec> describe_pangu_pro(const Config& config) {
  TRY_VOID(refuse_any(config, "interleaved_sliding_window"));
  TRY_VOID(refuse(config, "mlp_bias", true));
  TRY(ModelSpec spec, describe_dense(config, {.head_dim = "", .rotary = false}));
  TRY(const Attention attention, read_pangu_attention(config, spec.layers[0].attention(), spec.final_norm));
  // As in vLLM, neither the base nor the scaling of the configuration applies.
  TRY(const int rotated, config.integer("qk_rope_dim", {2, 4096}));
  spec.ropes = {RopeSpec{.rotary_dim = rotated, .interleaved = true}};
  for (LayerSpec& layer : spec.layers) {
    layer.mixer = attention;
    layer.attention().rope = 0;
  }
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  TRY_VOID(set_pangu_layers(spec, config));
  spec.names.attention.k_norm = "self_attn.k_layernorm";
  return spec;
}

std::span<const Family> deepseek_kin_families() {
  static constexpr Family kRows[] = {
      {"AXK1ForCausalLM", describe_axk1},
      {"PanguProMoEV2ForCausalLM", describe_pangu_pro},
      {"PanguUltraMoEForCausalLM", describe_pangu_ultra},
      {"SarvamMLAForCausalLM", describe_sarvam_mla},
  };
  return kRows;
}

}  // namespace octavo
