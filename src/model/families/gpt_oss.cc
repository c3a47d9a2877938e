// gpt-oss (OpenAI, 2025): experts with biases and a clamped gate, attention sinks, a sliding window in every
// second layer.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/quantization_config.h"

namespace octavo {

static Result<ModelSpec> describe_gpt_oss(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_windows(spec, config, [](int layer) { return layer % 2 == 0; }));
  TRY(const bool bias, config.boolean("attention_bias", true));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  TRY(const double alpha, config.number("swiglu_alpha", {1e-3, 1e3}, 1.702));
  TRY(const double limit, config.number("swiglu_limit", {1e-3, 1e9}, 7.0));
  experts.router.renormalise = true;  // the softmax is computed only over the selected experts
  experts.router_bias = true;
  experts.expert.activation = Activation::swigluoai;
  experts.expert.alpha = static_cast<float>(alpha);
  experts.expert.limit = static_cast<float>(limit);
  experts.expert.up_bias = experts.expert.down_bias = true;
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.attention().scores.sinks = true;
    layer.feed_forward = experts;
  }
  spec.names.of<Experts>().router = "mlp.router";
  TRY(const PackedFormat packed, packed_format(config));
  spec.names.of<Experts>().storage =
      packed.packing == Packing::mxfp4 ? ExpertStorage::stacked : ExpertStorage::stacked_transposed;
  spec.names.of<Experts>().up = {"mlp.experts.gate_up_proj"};
  spec.names.of<Experts>().up_bias = {"mlp.experts.gate_up_proj_bias"};
  spec.names.of<Experts>().interleaved = true;
  spec.names.of<Experts>().down = "mlp.experts.down_proj";
  spec.names.of<Experts>().down_bias = "mlp.experts.down_proj_bias";
  return spec;
}

std::span<const Family> gpt_oss_families() {
  static constexpr Family kRows[] = {{"GptOssForCausalLM", describe_gpt_oss}};
  return kRows;
}

}  // namespace octavo
