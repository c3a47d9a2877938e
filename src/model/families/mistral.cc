// Mistral (Jiang et al., 2023): Llama with a sliding window in every layer. Mixtral (Jiang et al., 2024):
// with experts.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_mistral(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_window(spec, config));
  return spec;
}

Result<ModelSpec> describe_mixtral(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_window(spec, config));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  experts.router.renormalise = true;
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  spec.names.router = "block_sparse_moe.gate";
  spec.names.expert_up = {"block_sparse_moe.experts.{}.w1", "block_sparse_moe.experts.{}.w3"};
  spec.names.expert_down = "block_sparse_moe.experts.{}.w2";
  return spec;
}

}  // namespace octavo
