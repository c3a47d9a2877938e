// Hy4 (HYV4; Tencent, 2026): DeepSeek-V3.2 with a gate for each element of attention's output, attention
// sinks, and several residual streams that are not mixed. Only the routed experts of a layer have limits.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

Result<> check_layer_types(const Config& config) {
  constexpr std::string_view kField = "layer_types";
  TRY(const std::vector<std::string> types, config.texts(kField));
  for (const std::string& type : types)
    if (type != "indexed_attention" && type != "deepseek_sparse_attention")
      return field_failure(
          kField, ErrorCode::unsupported,
          "{} has \"{}\", which is not supported: must be indexed_attention or deepseek_sparse_attention",
          config.where(kField), type);
  return {};
}

Result<HyperConnections> read_streams(const Config& config, float norm_eps) {
  HyperConnections hyper{.norm_eps = norm_eps, .mixes = false};
  TRY(hyper.count, config.integer("hc_mult", {1, kMaxStreams}));
  TRY(const double eps, config.number("hc_eps", {0, 1}));
  hyper.eps = hyper.post_eps = static_cast<float>(eps);
  TRY(hyper.magnitude, multiplier(config, "hc_magnitude"));
  return hyper;
}

void name_hy_v4_tensors(Names& names) {
  names.attention.sinks = "self_attn.learnable_sink_param";
  names.of<HyperConnections>() = {.mixer = "hc_attn_layer.hc_pre.hc_",
                                  .feed_forward = "hc_mlp_layer.hc_pre.hc_",
                                  .output = "hc_head.hc_head_"};
  names.ignorable.emplace_back("model.mtp_layers.*");
}

}  // namespace

static Result<ModelSpec> describe_hy_v4(const Config& config) {
  for (const char* field : {"enable_ihc", "gated_mla", "learnable_sink"})
    TRY_VOID(refuse(config, field, false));
  TRY_VOID(refuse(config, "soft_logits_capping", true));
  TRY_VOID(support(config, "gating_type", "elementwise"));
  TRY_VOID(check_layer_types(config));
  TRY(ModelSpec spec, describe_glm_dsa(config));
  TRY(const double limit, config.number("swiglu_limit", {-1e9, 1e9}));
  for (LayerSpec& layer : spec.layers) {
    auto& attention = std::get<LatentAttention>(layer.mixer);
    attention.norm = spec.final_norm;
    attention.sinks = attention.output_gate = true;
    attention.indexer->rotated_end = spec.ropes[0].rotary_dim;
    if (auto* experts = std::get_if<Experts>(&layer.feed_forward); experts && limit > 0)
      experts->expert.limit = static_cast<float>(limit);
  }
  TRY(spec.residual.hyper, read_streams(config, spec.final_norm.eps));
  spec.predictor.reset();
  name_hy_v4_tensors(spec.names);
  spec.other_names = spec.names;  // of files with a stack of all experts
  spec.other_names->of<Experts>().storage = ExpertStorage::stacked;
  spec.other_names->of<Experts>().up = {"mlp.experts.gate_up_proj"};
  spec.other_names->of<Experts>().down = "mlp.experts.down_proj";
  return spec;
}

std::span<const Family> hy_v4_families() {
  static constexpr Family kRows[] = {{"HYV4ForCausalLM", describe_hy_v4}};
  return kRows;
}

}  // namespace octavo
