// Encoders like BERT with RoPE. Nomic BERT (Nussbaum et al., "Nomic Embed", 2024) and GTE (Zhang et al.,
// "mGTE", 2024) have gated MLPs. Nomic v2 (Nussbaum and Duderstadt, "Training Sparse Mixture of Experts Text
// Embedding Models", 2025) has biases, ungated MLPs, and experts in every second layer. Jina v3 (Sturua et
// al., "jina-embeddings-v3", 2024) is an XLM-RoBERTa with a LoRA adapter for each task.
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Config::Range kTokenTypes{0, 1024};

// `activation` is the name of the field with the activation.
Result<ModelSpec> describe_nomic_encoder(const Config& config, std::string_view activation = "hidden_act") {
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .activation = activation,
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true}}));
  TRY(spec.embedding.token_types, config.integer("type_vocab_size", kTokenTypes));
  spec.embedding.norm = spec.final_norm;
  spec.final_norm = {};
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::post_norm;
    layer.post_norm = std::exchange(layer.pre_norm, {});
    layer.attention().mask.causal = false;
  }
  Names& names = spec.names;
  names.prefixes = {""};
  names.embedding.tokens = "embeddings.word_embeddings";
  names.embedding.token_types = "embeddings.token_type_embeddings";
  return spec;
}

// In the first Nomic files, the name of the activation tells whether MLPs are gated.
Result<> read_first_activation(const Config& config, Mlp& mlp) {
  TRY(const std::string name, config.text("activation_function"));
  mlp.gated = name != "gelu";
  mlp.activation = name == "swiglu" ? Activation::silu : Activation::gelu;
  if (name == "swiglu" || name == "geglu" || name == "gelu") return {};
  return field_failure("activation_function", ErrorCode::unsupported,
                       "{} is \"{}\", which is not supported: must be swiglu, geglu or gelu",
                       config.where("activation_function"), name);
}

// Each expert is an MLP like `expert`, without biases. All experts share one bias.
Result<Experts> read_experts(const Config& config, Mlp expert) {
  TRY_VOID(config.integer("num_shared_experts", {0, 0}, 0));
  TRY_VOID(refuse(config, "expert_choice_router", true));
  if (expert.gated)
    return field_failure("activation_function", ErrorCode::unsupported, "{}: gated experts are not supported",
                         config.where("activation_function"));
  expert.up_bias = expert.down_bias = false;
  Experts experts{.count = 0, .router = {}, .expert = expert, .sum_bias = true};
  TRY(experts.count, config.integer("num_experts", {1, kMaxExperts}));
  TRY(experts.router.chosen, config.integer("moe_top_k", {1, experts.count}));
  TRY(experts.router.renormalise, config.boolean("moe_normalize_expert_weights", false));
  return experts;
}

}  // namespace

// The first files have other field names than BERT. transformers' files have BERT's names.
static Result<ModelSpec> describe_nomic_bert(const Config& file) {
  const bool first = file.has("activation_function");
  const Config config = first ? file.with_names({{"hidden_size", "n_embd"},
                                                 {"num_hidden_layers", "n_layer"},
                                                 {"num_attention_heads", "n_head"},
                                                 {"intermediate_size", "n_inner"},
                                                 {"max_position_embeddings", "n_positions"},
                                                 {"layer_norm_eps", "layer_norm_epsilon"},
                                                 {"rope_theta", "rotary_emb_base"}})
                              : file;
  for (const char* field : {"prenorm", "use_rms_norm", "parallel_block", "rotary_emb_interleaved"})
    TRY_VOID(refuse(config, field, true));
  TRY_VOID(config.number("rotary_emb_fraction", {1, 1}, 1.0));
  TRY(ModelSpec spec, describe_nomic_encoder(config, first ? "" : "hidden_act"));
  Mlp mlp = spec.layers[0].mlp();
  if (first) TRY_VOID(read_first_activation(file, mlp));
  TRY(const bool attention_bias, config.boolean("qkv_proj_bias", false));
  TRY(mlp.up_bias, config.boolean("mlp_fc1_bias", false));
  TRY(mlp.down_bias, config.boolean("mlp_fc2_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = attention_bias, .out = attention_bias};
    layer.feed_forward = mlp;
  }
  TRY(const int experts_every, config.integer("moe_every_n_layers", {0, 1024}, 0));
  if (experts_every > 1) {
    TRY(const Experts experts, read_experts(config, mlp));
    for (std::size_t i = 1; i < spec.layers.size(); i += static_cast<std::size_t>(experts_every))
      spec.layers[i].feed_forward = experts;
  }
  Names& names = spec.names;
  names.embedding.norm = "emb_ln";
  names.layers = "encoder.layers.";
  names.attention.qkv = {"attn.Wqkv"};
  names.attention.out = "attn.out_proj";
  names.attention.post_norm = "norm1";
  names.mlp.up =
      mlp.gated ? std::vector<std::string>{"mlp.fc12", "mlp.fc11"} : std::vector<std::string>{"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.mlp.post_norm = "norm2";
  names.of<Experts>().router = "mlp.router.layer";
  names.of<Experts>().storage = ExpertStorage::flat;
  names.of<Experts>().up = {"mlp.experts.mlp.w1"};
  names.of<Experts>().down = "mlp.experts.mlp.w2";
  names.of<Experts>().sum_bias = "mlp.experts.bias";
  spec.head = Head{.pool = Pool::mean, .normalise = true};
  return spec;
}

static Result<ModelSpec> describe_jina_v3(const Config& config) {
  TRY(ModelSpec spec, describe_nomic_encoder(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  Names& names = spec.names;
  names.embedding.norm = "embeddings.LayerNorm";
  names.attention.post_norm = "post_attention_layernorm";
  names.mlp.up = {"mlp.fc1"};
  names.mlp.down = "mlp.fc2";
  names.mlp.post_norm = "post_mlp_layernorm";
  names.ignorable = {"pooler.*", "*embeddings.position_ids"};
  // transformers' files have the names above. The authors' files, which describe_first_jina_v3() reads, have
  // the names below.
  Names& first = spec.other_names.emplace(names);
  first.embedding.norm = "emb_ln";
  first.layers = "encoder.layers.";
  first.attention.qkv = {"mixer.Wqkv"};
  first.attention.out = "mixer.out_proj";
  first.attention.post_norm = "norm1";
  first.mlp.post_norm = "norm2";
  spec.head = Head{.pool = Pool::mean, .normalise = true};
  return spec;
}

Result<ModelSpec> describe_first_jina_v3(const Config& config) {
  TRY(ModelSpec spec, describe_jina_v3(config.with_names({{"rope_theta", "rotary_emb_base"}})));
  spec.names = *std::exchange(spec.other_names, {});
  spec.names.prefixes = {"roberta.", ""};
  spec.names.ignorable.emplace_back("roberta.pooler.*");
  return spec;
}

// Jina-ColBERT v2 (Jha et al., 2024): Jina v3's encoder without adapters, and a vector for each token.
static Result<ModelSpec> describe_colbert_jina(const Config& config) {
  TRY(ModelSpec spec, describe_first_jina_v3(config));
  HeadLayer linear{.name = "linear", .outputs = 128, .bias = false};
  for (const char* field : {"colbert_dim", "dim", "projection_dim"})
    if (config.has(field)) {
      TRY(linear.outputs, config.integer(field, {1, 1 << 16}));
      break;
    }
  spec.head = Head{.each_token = true, .normalise = true, .layers = {std::move(linear)}};
  return spec;
}

static Result<ModelSpec> describe_gte(const Config& config) {
  TRY(ModelSpec spec, describe_nomic_encoder(config));
  for (LayerSpec& layer : spec.layers) {
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().down_bias = true;
  }
  Names& names = spec.names;
  names.prefixes = {"", "new."};
  names.embedding.norm = "embeddings.LayerNorm";
  names.layers = "encoder.layer.";
  names.attention.qkv = {"attention.qkv_proj"};
  names.attention.out = "attention.o_proj";
  names.attention.post_norm = "attn_ln";
  names.mlp.up = {"mlp.up_gate_proj"};
  names.mlp.up_first = true;
  names.mlp.down = "mlp.down_proj";
  names.mlp.post_norm = "mlp_ln";
  names.ignorable = {"pooler.*", "classifier.*", "lm_head.*"};
  spec.head = Head{.pool = Pool::first, .normalise = true};
  return spec;
}

static Result<ModelSpec> describe_gte_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_gte(config));
  spec.names.prefixes = {"new."};
  spec.names.ignorable = {"lm_head.*"};
  TRY(spec.head, read_classifier(config));
  spec.head->layers = {{.name = "new.pooler.dense", .outputs = spec.dim, .activation = Activation::tanh},
                       {.name = "classifier", .outputs = static_cast<int>(spec.head->labels.size())}};
  score_each_token(spec);
  return spec;
}

std::span<const Family> nomic_bert_families() {
  static constexpr Family kRows[] = {
      {"ColBERTJinaRobertaModel", describe_colbert_jina},
      {"GteModel", describe_gte},
      {"GteNewForSequenceClassification", describe_gte_classifier},
      {"GteNewModel", describe_gte},
      {"JinaEmbeddingsV3Model", describe_jina_v3},
      {"NewForSequenceClassification", describe_gte_classifier},
      {"NewModel", describe_gte},
      {"NomicBertModel", describe_nomic_bert},
  };
  return kRows;
}

}  // namespace octavo
