// Alice AI (Yandex, 2026): Kimi delta attention, and the gated attention of Qwen3-Next. Each half of a layer
// reads a mixture of the outputs of earlier groups of layers.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/recurrent.h"

namespace octavo {
namespace {

Result<KimiDelta> read_delta_of_alice(const Config& config, const NormSpec& norm) {
  TRY(const DeltaNet net, read_delta_net(config, norm.eps));
  if (net.key_heads != net.value_heads)
    return invalid("linear_num_value_heads", "{} {} must be equal to linear_num_key_heads {}",
                   config.where("linear_num_value_heads"), net.value_heads, net.key_heads);
  if (net.key_dim != net.value_dim)
    return invalid("linear_value_head_dim", "{} {} must be equal to linear_key_head_dim {}",
                   config.where("linear_value_head_dim"), net.value_dim, net.key_dim);
  return KimiDelta{
      .heads = net.key_heads, .head_dim = net.key_dim, .conv_width = net.conv_width, .norm = net.norm};
}

Result<Experts> read_experts_of_alice(const Config& config, const Mlp& like) {
  TRY(Experts experts, read_experts(config, like, "moe_intermediate_size"));
  experts.router.scores = RouterScores::sigmoid;
  TRY(experts.router.renormalise, config.boolean("norm_topk_prob", true));
  experts.choice_bias = true;
  experts.shared = like;
  TRY(experts.shared->hidden, config.integer("shared_expert_intermediate_size", kDim));
  experts.shared_gate = true;
  return experts;
}

}  // namespace

static Result<ModelSpec> describe_alice_ai(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.hidden = "moe_intermediate_size",
                                              .norm = {.kind = NormKind::rms, .weight_offset = 1},
                                              .rotary_fraction = "partial_rotary_factor"}));
  TRY(const KimiDelta delta, read_delta_of_alice(config, spec.final_norm));
  TRY(const Experts experts, read_experts_of_alice(config, spec.layers[0].mlp()));
  const int layers = static_cast<int>(spec.layers.size());
  TRY(const int group, config.integer("block_attn_res_block_size", {1, 1024}));
  if ((layers + group - 1) / group >= kMaxSources)
    return field_failure("block_attn_res_block_size", ErrorCode::unsupported,
                         "{} is {}: {} layers have {} groups, but at most {} are supported",
                         config.where("block_attn_res_block_size"), group, layers,
                         (layers + group - 1) / group, kMaxSources - 1);
  spec.residual.sources = AttendedSources{.group = group, .norm = spec.final_norm};
  constexpr std::string_view kKinds[] = {"linear_attention", "full_attention"};
  TRY(const std::vector<std::string> kinds,
      read_layer_kinds(config, "layer_types", kKinds, spec.layers.size()));
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
    layer.attention().output_gate = true;
    layer.feed_forward = experts;
    if (kinds.empty() ? (i + 1) % 4 != 0 : kinds[i] == kKinds[0]) layer.mixer = delta;
  }
  spec.names.of<KimiDelta>() = {.prefix = "linear_attn.", .log = "a_log_bias", .log_row = true};
  spec.names.ignorable.emplace_back("mtp.*");
  spec.other_names = spec.names;
  spec.other_names->of<KimiDelta>().log = "A_log";
  return spec;
}

std::span<const Family> alice_ai_families() {
  static constexpr Family kRows[] = {{"AliceAIForCausalLM", describe_alice_ai}};
  return kRows;
}

}  // namespace octavo
