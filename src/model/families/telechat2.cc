// TeleChat2 (China Telecom, 2024): Llama with GPT-2's tensor names, and a fused matrix of keys and values,
// ordered by head. TeleFLM (2024): Llama with multipliers of embeddings and logits.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_telechat2(const Config& file) {
  const Config config = file.with_names({{"num_hidden_layers", "n_layer"},
                                         {"num_attention_heads", "n_head"},
                                         {"intermediate_size", "ffn_hidden_size"},
                                         {"rms_norm_eps", "layer_norm_epsilon"},
                                         {"max_position_embeddings", "seq_length"}});
  TRY(ModelSpec spec, describe_dense(config));
  TRY_VOID(refuse(config, "embed_layernorm", true));
  for (LayerSpec& layer : spec.layers) layer.attention().biases.out = layer.mlp().down_bias = true;
  Names& names = spec.names;
  names.prefixes = {"transformer."};
  names.embedding.tokens = "word_embeddings";
  names.final_norm = "ln_f";
  names.layers = "h.";
  names.attention.qkv = {"self_attention.query", "self_attention.key_value"};
  names.attention.qkv_order = QkvOrder::values_by_head;
  names.attention.out = "self_attention.dense";
  return spec;
}

static Result<ModelSpec> describe_teleflm(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY(const bool scaled, config.boolean("use_mup", false));
  if (!scaled) return spec;
  TRY(spec.embedding.scale, multiplier(config, "input_mult"));
  TRY(const float logits, multiplier(config, "output_mult"));
  TRY(const float width, multiplier(config, "mup_scale_factor"));
  spec.logits.scale = logits / width;
  return spec;
}

std::span<const Family> telechat2_families() {
  static constexpr Family kRows[] = {
      {"TeleChat2ForCausalLM", describe_telechat2},
      {"TeleFLMForCausalLM", describe_teleflm},
  };
  return kRows;
}

}  // namespace octavo
