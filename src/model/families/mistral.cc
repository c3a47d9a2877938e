// Mistral (Jiang et al., 2023): Llama with a sliding window in every layer. Mixtral (Jiang et al., 2024):
// with experts. Ministral (2024): windows in some layers. Ministral 3 (2025): queries that grow with the
// position. Mistral 3 (2025): Mistral, Ministral 3 or Mistral 4 with images (pixtral.cc), here their text.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

Result<ModelSpec> describe_mistral(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_window(spec, config));
  return spec;
}

Result<ModelSpec> describe_ministral(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(set_windows(spec, config, [](int) { return true; }));
  return spec;
}

Result<ModelSpec> describe_ministral3(const Config& config) {
  TRY(ModelSpec spec, describe_mistral(config));
  TRY(spec.temperature, read_temperature(config));
  for (LayerSpec& layer : spec.layers) layer.attention().temperature = spec.temperature.beta != 0;
  return spec;
}

Result<ModelSpec> describe_mistral3_text(const Config& config) {
  TRY(const std::string kind, config.text("model_type", "mistral"));
  TRY(ModelSpec spec, kind == "ministral3" ? describe_ministral3(config)
                      : kind == "mistral4" ? describe_mistral4(config)
                                           : describe_mistral(config));
  // Older files have all of the language model under its name, newer ones not its output matrix.
  spec.names.prefixes = {"model.language_model.", "language_model.model."};
  for (const char* other :
       {"vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*", "model.multi_modal_projector.*"})
    spec.names.ignorable.emplace_back(other);
  spec.other_names = spec.names;
  spec.other_names->lm_head = "language_model.lm_head";
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
