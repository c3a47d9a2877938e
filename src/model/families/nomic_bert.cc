// Encoders as BERT with rotary embeddings: Nomic BERT (Nussbaum et al., "Nomic Embed", 2024) and GTE (Zhang
// et al., "mGTE", 2024), with gated MLPs, and Jina v3 (Sturua et al., "jina-embeddings-v3", 2024), an
// XLM-RoBERTa whose tasks are LoRA adapters.
#include <utility>

#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr Config::Range kTypes{0, 1024};

Result<ModelSpec> describe_encoder(const Config& config) {
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true}}));
  TRY(spec.token_types, config.integer("type_vocab_size", kTypes));
  spec.embedding_norm = spec.final_norm;
  spec.final_norm = {};
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::post_norm;
    layer.post_norm = std::exchange(layer.pre_norm, {});
    layer.attention().causal = false;
  }
  Names& names = spec.names;
  names.prefixes = {""};
  names.embedding = "embeddings.word_embeddings";
  names.token_types = "embeddings.token_type_embeddings";
  return spec;
}

}  // namespace

// The first files have fields of their own, those of transformers BERT's.
Result<ModelSpec> describe_nomic_bert(const Config& file) {
  const Config config = file.has("n_embd") ? file.with_names({{"hidden_size", "n_embd"},
                                                              {"num_hidden_layers", "n_layer"},
                                                              {"num_attention_heads", "n_head"},
                                                              {"intermediate_size", "n_inner"},
                                                              {"max_position_embeddings", "n_positions"},
                                                              {"layer_norm_eps", "layer_norm_epsilon"},
                                                              {"rope_theta", "rotary_emb_base"},
                                                              {"hidden_act", "activation_function"}})
                                           : file;
  for (const char* field : {"prenorm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "use_rms_norm",
                            "parallel_block", "rotary_emb_interleaved"})
    TRY_VOID(refuse(config, field, true));
  TRY(const int experts, config.integer("moe_every_n_layers", {0, 1024}, 0));
  if (experts > 0)
    return field_failure("moe_every_n_layers", ErrorCode::unsupported, "{} is {}; experts are not supported",
                         config.where("moe_every_n_layers"), experts);
  TRY(ModelSpec spec, describe_encoder(config));
  Names& names = spec.names;
  names.embedding_norm = "emb_ln";
  names.layers = "encoder.layers.";
  names.qkv = {"attn.Wqkv"};
  names.out = "attn.out_proj";
  names.attention_post_norm = "norm1";
  names.up = {"mlp.fc12", "mlp.fc11"};
  names.down = "mlp.fc2";
  names.mlp_post_norm = "norm2";
  spec.head = Head{.pool = Pool::mean, .normalise = true};
  return spec;
}

Result<ModelSpec> describe_jina_v3(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qkv_bias = layer.attention().out_bias = true;
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  Names& names = spec.names;
  names.embedding_norm = "embeddings.LayerNorm";
  names.attention_post_norm = "post_attention_layernorm";
  names.up = {"mlp.fc1"};
  names.down = "mlp.fc2";
  names.mlp_post_norm = "post_mlp_layernorm";
  names.ignorable = {"pooler.*", "*embeddings.position_ids", "*.inv_freq"};
  // As transformers stores what it has read of the first files. Adapters have the names above.
  Names& first = spec.other_names.emplace(names);
  first.embedding_norm = "emb_ln";
  first.layers = "encoder.layers.";
  first.qkv = {"mixer.Wqkv"};
  first.out = "mixer.out_proj";
  first.attention_post_norm = "norm1";
  first.mlp_post_norm = "norm2";
  spec.head = Head{.pool = Pool::mean, .normalise = true};
  return spec;
}

Result<ModelSpec> describe_gte(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().qkv_bias = layer.attention().out_bias = true;
    layer.mlp().down_bias = true;
  }
  Names& names = spec.names;
  names.prefixes = {"", "new."};
  names.embedding_norm = "embeddings.LayerNorm";
  names.layers = "encoder.layer.";
  names.qkv = {"attention.qkv_proj"};
  names.out = "attention.o_proj";
  names.attention_post_norm = "attn_ln";
  names.up = {"mlp.up_gate_proj"};
  names.up_first = true;
  names.down = "mlp.down_proj";
  names.mlp_post_norm = "mlp_ln";
  names.ignorable = {"pooler.*", "classifier.*", "lm_head.*", "*.inv_freq"};
  spec.head = Head{.pool = Pool::first, .normalise = true};
  return spec;
}

Result<ModelSpec> describe_gte_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_gte(config));
  spec.names.prefixes = {"new."};
  spec.names.ignorable = {"lm_head.*", "*.inv_freq"};
  TRY(spec.head, read_classifier(config));
  spec.head->layers = {{.name = "new.pooler.dense", .outputs = spec.dim, .activation = Activation::tanh},
                       {.name = "classifier", .outputs = static_cast<int>(spec.head->labels.size())}};
  return spec;
}

}  // namespace octavo
