// Apertus (Swiss AI, 2025): ungated MLPs with xIELU, and norms of queries and keys.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_apertus(const Config& config) {
  TRY(const std::string activation, config.text("hidden_act"));
  const bool xielu = activation == "xielu";
  TRY(ModelSpec spec, describe_dense(config, {.activation = xielu ? "" : "hidden_act"}));
  TRY(const bool bias, config.boolean("attention_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = bias, .out = bias};
    layer.attention().norms = {QkNorm::shared, layer.pre_norm};
    layer.mlp().gated = false;
    if (xielu) layer.mlp().activation = Activation::xielu;
  }
  spec.names.attention.norm = "attention_layernorm";
  spec.names.mlp.norm = "feedforward_layernorm";
  spec.names.mlp.up = {"mlp.up_proj"};
  // These parameters are 1/2 and -1e-6 in all checkpoints, so they are not read.
  for (const char* constant : {"*.mlp.act_fn.beta", "*.mlp.act_fn.eps"})
    spec.names.ignorable.emplace_back(constant);
  return spec;
}

std::span<const Family> apertus_families() {
  static constexpr Family kRows[] = {{"ApertusForCausalLM", describe_apertus}};
  return kRows;
}

}  // namespace octavo
