// ModernBERT (Warner et al., "Smarter, Better, Faster, Longer", 2024): an encoder with norms before attention
// and MLP, gated MLPs, RoPE, and sliding windows in two of three layers.
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Dialect kDialect{.kv_heads = "num_attention_heads",
                           .head_dim = "",
                           .activation = "hidden_activation",
                           .eps = "norm_eps",
                           .norm = {.kind = NormKind::layer},
                           .rotary = false};

// `local` selects the rotary embedding of layers with a window.
Result<RopeSpec> read_own_rope(const Config& config, const ModelSpec& spec, bool local) {
  Dialect dialect = kDialect;
  dialect.theta = local ? "local_rope_theta" : "global_rope_theta";
  return read_rope(config, dialect, spec.layers[0].attention().head_dim, spec.max_positions,
                   local ? "sliding_attention" : "full_attention");
}

// Sets the windows: a token sees itself and local_attention / 2 tokens, rounded down, on each side.
Result<> set_modernbert_layers(ModelSpec& spec, const Config& config) {
  TRY(const int width, config.integer("local_attention", {1, 1 << 27}));
  TRY(const int every, config.integer("global_attn_every_n_layers", {1, 1024}, 3));
  TRY(const bool attention_bias, config.boolean("attention_bias"));
  TRY(const bool mlp_bias, config.boolean("mlp_bias"));
  TRY(const std::vector<std::string> types, config.texts("layer_types"));
  if (!types.empty() && types.size() != spec.layers.size())
    return invalid("layer_types", "{} has {} entries, but the model has {} layers",
                   config.where("layer_types"), types.size(), spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    Attention& attention = spec.layers[i].attention();
    const bool local =
        types.empty() ? i % static_cast<std::size_t>(every) != 0 : types[i] == "sliding_attention";
    attention.mask.window = local ? width / 2 + 1 : 0;
    attention.rope = local ? 1 : 0;
    attention.mask.causal = false;
    attention.biases = {.qkv = attention_bias, .out = attention_bias};
    spec.layers[i].mlp().up_bias = spec.layers[i].mlp().down_bias = mlp_bias;
  }
  spec.layers[0].mixer_normed = false;  // the embeddings are already normalised
  return {};
}

// `before` is the prefix of all names.
Result<ModelSpec> describe_modernbert_encoder(const Config& config, const std::string& before) {
  TRY(ModelSpec spec, describe_dense(config, kDialect));
  TRY(const bool bias, config.boolean("norm_bias"));
  spec.final_norm.bias = bias;
  for (LayerSpec& layer : spec.layers) layer.pre_norm.bias = bias;
  spec.embedding.norm = spec.final_norm;
  TRY_VOID(set_modernbert_layers(spec, config));
  for (const bool local : {false, true}) {
    TRY(spec.ropes.emplace_back(), read_own_rope(config, spec, local));
  }
  Names& names = spec.names;
  names.prefixes = {before};
  names.embedding.tokens = "embeddings.tok_embeddings";
  names.embedding.norm = "embeddings.norm";
  names.attention.norm = "attn_norm";
  names.mlp.norm = "mlp_norm";
  names.attention.qkv = {"attn.Wqkv"};
  names.attention.out = "attn.Wo";
  names.mlp.up = {"mlp.Wi"};
  names.mlp.down = "mlp.Wo";
  names.final_norm = "final_norm";
  names.ignorable = {"head.*", "decoder.*"};
  return spec;
}

}  // namespace

static Result<ModelSpec> describe_modernbert(const Config& config) {
  TRY(ModelSpec spec, describe_modernbert_encoder(config, ""));
  spec.names.prefixes.emplace_back("model.");  // the prefix in checkpoints of the masked language model
  spec.head = Head{.pool = Pool::first, .normalise = true};
  return spec;
}

// ColBERT models have one vector per token. A folder of Sentence Transformers (PyLate) contains the last
// matrix.
static Result<ModelSpec> describe_colbert_modernbert(const Config& config) {
  TRY(ModelSpec spec, describe_modernbert(config));
  spec.head = Head{.each_token = true, .normalise = true};
  return spec;
}

// ColModernVBERT (Teiletche et al., "ModernVBERT", 2025) has one vector per token. Octavo reads the texts;
// documents that are images are not supported.
static Result<ModelSpec> describe_colmodernvbert(const Config& config) {
  TRY(ModelSpec spec, describe_modernbert_encoder(config, "model.text_model."));
  HeadLayer linear{.name = "model.custom_text_proj"};
  const Config outer = config.outer();
  TRY(linear.outputs,
      (outer.has("embedding_dim") ? outer : config).integer("embedding_dim", {1, 1 << 16}, 128));
  spec.head = Head{.each_token = true, .normalise = true, .layers = {std::move(linear)}};
  for (const char* other : {"model.vision_model.*", "model.connector.*", "lm_head.*"})
    spec.names.ignorable.emplace_back(other);
  return spec;
}

static Result<ModelSpec> describe_modernbert_token_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_modernbert_encoder(config, "model."));
  spec.names.ignorable.clear();
  TRY(Head head, read_classifier(config));
  head.each_token = true;
  TRY(const std::string activation, config.text("classifier_activation"));
  if (activation != "gelu")
    return field_failure("classifier_activation", ErrorCode::unsupported,
                         "{} is \"{}\", but only gelu is supported", config.where("classifier_activation"),
                         activation);
  HeadLayer dense{.name = "head.dense",
                  .outputs = spec.dim,
                  .activation = Activation::gelu,
                  .norm = spec.final_norm,
                  .norm_name = "head.norm"};
  TRY(dense.bias, config.boolean("classifier_bias"));
  const int labels = static_cast<int>(head.labels.size());
  head.layers = {std::move(dense), {.name = "classifier", .outputs = labels}};
  spec.head = std::move(head);
  return spec;
}

static Result<ModelSpec> describe_modernbert_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_modernbert_token_classifier(config));
  spec.head->each_token = false;
  TRY(const std::string pooling, config.text("classifier_pooling"));
  if (pooling != "cls" && pooling != "mean")
    return field_failure("classifier_pooling", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be cls or mean",
                         config.where("classifier_pooling"), pooling);
  spec.head->pool = pooling == "cls" ? Pool::first : Pool::mean;
  score_each_token(spec);
  return spec;
}

std::span<const Family> modernbert_families() {
  static constexpr Family kRows[] = {
      {"ColBERTModernBertModel", describe_colbert_modernbert},
      {"ColModernVBertForRetrieval", describe_colmodernvbert, true},
      {"ModernBertForSequenceClassification", describe_modernbert_classifier},
      {"ModernBertForTokenClassification", describe_modernbert_token_classifier},
      {"ModernBertModel", describe_modernbert},
      {"ModernVBertModel", describe_colmodernvbert, true},
  };
  return kRows;
}

}  // namespace octavo
