// Mistral and its successors.
// Mistral (Jiang et al., 2023): Llama with a sliding window in every layer.
// Mixtral (Jiang et al., 2024): Mistral with experts.
// Ministral (2024): sliding windows in the layers that layer_types lists.
// Ministral 3 (2025): a factor of queries grows with the position.
// Mistral 3 (2025): the language model of Mistral, Ministral 3 or Mistral 4 with images (pixtral.cc).
// Mistral Large 3 (2025): like Mistral 4, but only in Mistral's own format.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

// Sets the tensor names of Mistral's own format. In this format, RoPE pairs adjacent elements of a head.
void take_mistral_names(ModelSpec& spec) {
  Names& names = spec.names;
  names.prefixes = {""};
  names.lm_head = "output";
  names.embedding.tokens = "tok_embeddings";
  names.attention.norm = "attention_norm";
  names.mlp.norm = "ffn_norm";
  names.attention.qkv = {"attention.wq", "attention.wk", "attention.wv"};
  names.attention.out = "attention.wo";
  names.of<LatentAttention>().q = "attention.wq";
  names.of<LatentAttention>().q_down = "attention.wq_a";
  names.of<LatentAttention>().q_norm = "attention.q_a_norm";
  names.of<LatentAttention>().q_up = "attention.wq_b";
  names.of<LatentAttention>().down = "attention.wkv_a_with_mqa";
  names.of<LatentAttention>().norm = "attention.kv_a_norm";
  names.of<LatentAttention>().up = "attention.wkv_b";
  names.mlp.up = {"feed_forward.w1", "feed_forward.w3"};
  names.mlp.down = "feed_forward.w2";
  names.of<Experts>().shared_up = {"shared_experts.w1", "shared_experts.w3"};
  names.of<Experts>().shared_down = "shared_experts.w2";
  names.ignorable = {"vision_encoder.*", "vision_language_adapter.*", "patch_merger.*",
                     "pre_mm_projector_norm.*"};
  spec.ropes[0].interleaved = true;
}

// `before` is the prefix of the experts' names.
void take_mistral_expert_names(Names& names, const std::string& before) {
  names.of<Experts>().storage = ExpertStorage::each;
  names.of<Experts>().router = before + "gate";
  names.of<Experts>().up = {before + "experts.{}.w1", before + "experts.{}.w3"};
  names.of<Experts>().down = before + "experts.{}.w2";
}

// Returns whether the config was made from params.json (params_file.h).
Result<bool> has_mistral_names(const Config& config) {
  TRY(const std::string kind, config.text("model_type", ""));
  return kind == "transformer";
}

}  // namespace

Result<ModelSpec> describe_mistral(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config));
  // A Mistral config.json with layer_types belongs to Ministral.
  TRY_VOID(set_windows(spec, config, [](int) { return true; }));
  TRY(const bool own_names, has_mistral_names(config));
  if (own_names) take_mistral_names(spec);
  return spec;
}

static Result<ModelSpec> describe_ministral3(const Config& config) {
  TRY(ModelSpec spec, describe_mistral(config));
  TRY(spec.temperature, read_temperature(config));
  for (LayerSpec& layer : spec.layers) layer.attention().scores.temperature = spec.temperature.length > 0;
  return spec;
}

Result<ModelSpec> describe_mistral3_text(const Config& config) {
  TRY(const std::string kind, config.text("model_type", "mistral"));
  TRY(ModelSpec spec, kind == "ministral3" ? describe_ministral3(config)
                      : kind == "mistral4" ? describe_mistral4(config)
                                           : describe_mistral(config));
  // In older files, all names of the language model have its prefix. In newer files, the output matrix has no
  // prefix.
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
  TRY_VOID(set_window_of_all(spec, config));
  TRY(Experts experts, read_experts(config, spec.layers[0].mlp(), "intermediate_size"));
  experts.router.renormalise = true;
  for (LayerSpec& layer : spec.layers) layer.feed_forward = experts;
  spec.names.of<Experts>().router = "block_sparse_moe.gate";
  spec.names.of<Experts>().up = {"block_sparse_moe.experts.{}.w1", "block_sparse_moe.experts.{}.w3"};
  spec.names.of<Experts>().down = "block_sparse_moe.experts.{}.w2";
  TRY(const bool own_names, has_mistral_names(config));
  if (own_names) {
    take_mistral_names(spec);
    take_mistral_expert_names(spec.names, "feed_forward.");
  }
  return spec;
}

static Result<ModelSpec> describe_mistral_large3(const Config& config) {
  TRY(ModelSpec spec, describe_mistral4(config));
  spec.other_names.reset();
  take_mistral_names(spec);
  take_mistral_expert_names(spec.names, "");
  return spec;
}

std::span<const Family> mistral_families() {
  static constexpr Family kRows[] = {
      {"Ministral3ForCausalLM", describe_ministral3},
      {"MinistralForCausalLM", describe_mistral},
      {"MistralForCausalLM", describe_mistral},
      {"MistralForSequenceClassification", describe_decoder_classifier<describe_mistral>},
      {"MistralLarge3ForCausalLM", describe_mistral_large3},
      {"MistralModel", describe_embedder<describe_mistral>},
      {"MixtralForCausalLM", describe_mixtral},
  };
  return kRows;
}

}  // namespace octavo
