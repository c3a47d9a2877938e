// DBRX (Databricks, 2024): layer norms without biases, a fused query, key and value matrix with clipped
// output, and experts whose matrices are stacked in one tensor.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

Result<Experts> read_dbrx_experts(const Config& file) {
  TRY(const std::optional<Config> nested, file.object("ffn_config"));
  if (!nested) return invalid("ffn_config", "{} is missing", file.where("ffn_config"));
  const Config& config = *nested;
  Experts experts{.count = 0, .router = {}, .expert = {}};
  TRY(experts.count, config.integer("moe_num_experts", {1, kMaxExperts}, 4));
  TRY(experts.router.chosen, config.integer("moe_top_k", {1, experts.count}, 1));
  TRY(experts.expert.hidden, config.integer("ffn_hidden_size", {1, 1 << 20}, 3584));
  TRY(const double power, config.number("moe_normalize_expert_weights", {0, 100}, 1.0));
  experts.router.renormalise = true;
  TRY(const std::optional<Config> activation, config.object("ffn_act_fn"));
  TRY(const std::string name, activation ? activation->text("name", "silu") : std::string("silu"));
  if (power != 1 || name != "silu")
    return field_failure(
        "ffn_config", ErrorCode::unsupported,
        "{}: only silu and expert weights with the sum 1 are supported, not {} and a norm of {}",
        file.where("ffn_config"), name, power);
  return experts;
}

}  // namespace

static Result<ModelSpec> describe_dbrx(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.dim = "d_model",
                                              .layers = "n_layers",
                                              .heads = "n_heads",
                                              .kv_heads = "",
                                              .hidden = "",
                                              .head_dim = "",
                                              .positions = "max_seq_len",
                                              .activation = "",
                                              .eps = "",
                                              .norm = {.kind = NormKind::layer, .eps = 1e-5F}}));
  TRY(const Experts experts, read_dbrx_experts(config));
  Attention attention = spec.layers[0].attention();
  attention.kv_heads = 1;
  TRY(const std::optional<Config> nested, config.object("attn_config"));
  if (nested) {
    TRY(attention.kv_heads, nested->integer("kv_n_heads", {1, attention.q_heads}, 1));
    TRY(attention.clip, read_clip(*nested));
    TRY(spec.ropes[0].theta, nested->number("rope_theta", {1, 1e12}, spec.ropes[0].theta));
  }
  if (attention.q_heads % attention.kv_heads != 0)
    return invalid("kv_n_heads", "{}: kv_n_heads {} must divide n_heads {}", config.where("attn_config"),
                   attention.kv_heads, attention.q_heads);
  for (LayerSpec& layer : spec.layers) {
    layer.mixer = attention;
    layer.feed_forward = experts;
  }
  spec.names = {.prefixes = {"transformer."},
                .embedding = {.tokens = "wte"},
                .final_norm = "norm_f",
                .layers = "blocks.",
                .attention = {.norm = "norm_attn_norm.norm_1",
                              .qkv = {"norm_attn_norm.attn.Wqkv"},
                              .out = "norm_attn_norm.attn.out_proj"},
                .mlp = {.norm = "norm_attn_norm.norm_2"}};
  spec.names.of<Experts>() = {.router = "ffn.router.layer",
                              .storage = ExpertStorage::flat,
                              .up = {"ffn.experts.mlp.w1", "ffn.experts.mlp.v1"},
                              .down = "ffn.experts.mlp.w2"};
  return spec;
}

std::span<const Family> dbrx_families() {
  static constexpr Family kRows[] = {{"DbrxForCausalLM", describe_dbrx}};
  return kRows;
}

}  // namespace octavo
