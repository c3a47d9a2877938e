// Hunyuan (Tencent, 2025): norms of queries and keys after RoPE, and a RoPE base that `alpha` scales at all
// lengths. Variants have experts and a shared expert. Hy3 (HYV3, 2026) has the norms before RoPE, and
// DeepSeek-V3's experts.
#include <algorithm>
#include <cmath>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

// Some files have a list with one entry per layer. All entries must be equal.
Result<int> read_uniform(const Config& config, std::string_view field, Config::Range range) {
  if (!config.is_list(field)) return config.integer(field, range);
  TRY(const std::vector<int> list, config.integers(field, range));
  if (!list.empty() && std::ranges::count(list, list[0]) == std::ssize(list)) return list[0];
  return field_failure(field, ErrorCode::unsupported, "{} must be the same for all layers",
                       config.where(field));
}

}  // namespace

static Result<ModelSpec> describe_hunyuan(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
    layer.attention().norms.qk_after_rope = true;
  }
  spec.names.attention.q_norm = "self_attn.query_layernorm";
  spec.names.attention.k_norm = "self_attn.key_layernorm";
  TRY(std::optional<Config> scaling, config.object("rope_scaling"));
  if (!scaling) {
    TRY(scaling, config.object("rope_parameters"));
  }
  RopeSpec& rope = spec.ropes[0];
  if (rope.scaling.kind != RopeScalingKind::dynamic || !scaling->has("alpha")) return spec;
  TRY(const double alpha, scaling->number("alpha", {1, 1e9}));
  rope.scaling = {};
  rope.theta *= std::pow(alpha, rope.rotary_dim / (rope.rotary_dim - 2.0));
  TRY(spec.max_positions, config.integer("max_position_embeddings", {1, 1 << 27}));
  return spec;
}

static Result<ModelSpec> describe_hunyuan_moe(const Config& config) {
  TRY(ModelSpec spec, describe_hunyuan(config));
  const Mlp mlp = spec.layers[0].mlp();
  Experts experts{.count = 0, .router = {.renormalise = true}, .expert = mlp, .shared = mlp};
  TRY(experts.count, read_uniform(config, "num_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, read_uniform(config, "moe_topk", {1, experts.count}));
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  spec.names.of<Experts>().router = "mlp.gate.wg";
  spec.names.of<Experts>().shared_up = {"mlp.shared_mlp.gate_proj", "mlp.shared_mlp.up_proj"};
  spec.names.of<Experts>().shared_down = "mlp.shared_mlp.down_proj";
  return spec;
}

static Result<ModelSpec> describe_hunyuan_v3(const Config& file) {
  const Config config = file.with_names({{"n_routed_experts", "num_experts"},
                                         {"n_shared_experts", "num_shared_experts"},
                                         {"norm_topk_prob", "route_norm"},
                                         {"routed_scaling_factor", "router_scaling_factor"}});
  TRY(ModelSpec spec, describe_llama(config));
  TRY_VOID(refuse(config, "qk_norm", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
  }
  TRY_VOID(set_deepseek_experts(spec, config, RouterScores::sigmoid));
  spec.predictor.reset();
  spec.names.of<Experts>().router = "mlp.router.gate";
  spec.names.of<Experts>().choice_bias = "mlp.expert_bias";
  spec.names.of<Experts>().shared_up = {"mlp.shared_mlp.gate_proj", "mlp.shared_mlp.up_proj"};
  spec.names.of<Experts>().shared_down = "mlp.shared_mlp.down_proj";
  return spec;
}

std::span<const Family> hunyuan_families() {
  static constexpr Family kRows[] = {
      {"HYV3ForCausalLM", describe_hunyuan_v3},
      {"HunYuanDenseV1ForCausalLM", describe_hunyuan},
      {"HunYuanMoEV1ForCausalLM", describe_hunyuan_moe},
  };
  return kRows;
}

}  // namespace octavo
