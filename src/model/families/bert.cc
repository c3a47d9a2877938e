// BERT (Devlin et al., 2019) and variants: encoders with bidirectional attention, norms after the residual,
// learned positions and token types. RoBERTa (Liu et al., 2019) and XLM-RoBERTa (Conneau et al., 2020) have
// another first position, and other names in the classifier. ColBERT (Khattab and Zaharia, 2020) is BERT with
// a vector for each token. BGE-M3 has a vector for the text, vectors for tokens, and token weights.
#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"
#include "model/families/readers.h"

namespace octavo {
namespace {

constexpr Config::Range kTypes{0, 1024};

// `before` is the prefix of all tensor names.
Names bert_names(const std::string& before) {
  Names names;
  names.prefixes = {""};
  names.embedding.tokens = before + "embeddings.word_embeddings";
  names.embedding.positions = before + "embeddings.position_embeddings";
  names.embedding.token_types = before + "embeddings.token_type_embeddings";
  names.embedding.norm = before + "embeddings.LayerNorm";
  names.layers = before + "encoder.layer.";
  names.attention.post_norm = "attention.output.LayerNorm";
  names.mlp.post_norm = "output.LayerNorm";
  names.attention.qkv = {"attention.self.query", "attention.self.key", "attention.self.value"};
  names.attention.out = "attention.output.dense";
  names.mlp.up = {"intermediate.dense"};
  names.mlp.down = "output.dense";
  // Tensors of heads that are only used in training, and tensors that older programs wrote.
  names.ignorable = {"*embeddings.position_ids", "cls.*", "lm_head.*"};
  return names;
}

Result<ModelSpec> describe_encoder(const Config& config, const std::string& before) {
  TRY(const std::string kind, config.text("position_embedding_type", "absolute"));
  if (kind != "absolute")
    return field_failure("position_embedding_type", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be absolute",
                         config.where("position_embedding_type"), kind);
  TRY(ModelSpec spec, describe_dense(config, {.kv_heads = "num_attention_heads",
                                              .head_dim = "",
                                              .eps = "layer_norm_eps",
                                              .norm = {.kind = NormKind::layer, .bias = true},
                                              .rotary = false}));
  TRY(spec.embedding.token_types, config.integer("type_vocab_size", kTypes));
  spec.embedding.learned_positions = spec.max_positions;
  spec.embedding.norm = spec.final_norm;
  spec.final_norm = {};
  for (LayerSpec& layer : spec.layers) {
    layer.residual = Residual::post_norm;
    layer.post_norm = layer.pre_norm;
    layer.pre_norm = {};
    layer.attention().mask.causal = false;
    layer.attention().biases = {.qkv = true, .out = true};
    layer.mlp().gated = false;
    layer.mlp().up_bias = layer.mlp().down_bias = true;
  }
  spec.names = bert_names(before);
  return spec;
}

// The position of the first token is the padding token's id plus 1.
Result<> shift_positions(ModelSpec& spec, const Config& config) {
  TRY(const int padding, config.integer("pad_token_id", {0, spec.vocab - 1}));
  spec.embedding.first_position = padding + 1;
  spec.max_positions -= spec.embedding.first_position;
  if (spec.max_positions > 0) return {};
  return invalid("max_position_embeddings", "{} is {}, but must be above {}, the first position",
                 config.where("max_position_embeddings"), spec.embedding.learned_positions,
                 spec.embedding.first_position);
}

// Sets the head for models without files of Sentence Transformers: the vector of the first token, scaled to
// length 1.
void embed_first(ModelSpec& spec, const std::string& before) {
  spec.head = Head{.pool = Pool::first, .normalise = true};
  spec.names.ignorable.push_back(before + "pooler.*");
}

Result<ModelSpec> describe_bert_embedder(const Config& config, const std::string& before) {
  TRY(ModelSpec spec, describe_encoder(config, before));
  embed_first(spec, before);
  return spec;
}

Result<ModelSpec> describe_roberta_embedder(const Config& config, const std::string& before) {
  TRY(ModelSpec spec, describe_bert_embedder(config, before));
  TRY_VOID(shift_positions(spec, config));
  return spec;
}

void set_layers(Head& head, int dim, const std::string& dense, const std::string& classifier) {
  head.layers = {{.name = dense, .outputs = dim, .activation = Activation::tanh},
                 {.name = classifier, .outputs = static_cast<int>(head.labels.size())}};
}

Result<> score_tokens(ModelSpec& spec, const Config& config, const std::string& before) {
  TRY(spec.head, read_classifier(config));
  spec.head->each_token = true;
  spec.head->layers = {{.name = "classifier", .outputs = static_cast<int>(spec.head->labels.size())}};
  spec.names.ignorable.push_back(before + "pooler.*");
  return {};
}

}  // namespace

static Result<ModelSpec> describe_bert(const Config& config) { return describe_bert_embedder(config, ""); }

// Describes checkpoints of the masked language model.
static Result<ModelSpec> describe_bert_filler(const Config& config) {
  return describe_bert_embedder(config, "bert.");
}

static Result<ModelSpec> describe_bert_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config, "bert."));
  TRY(spec.head, read_classifier(config));
  set_layers(*spec.head, spec.dim, "bert.pooler.dense", "classifier");
  score_each_token(spec);
  return spec;
}

// A token classifier has a score per token and label, for example for named-entity recognition.
static Result<ModelSpec> describe_bert_token_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config, "bert."));
  TRY_VOID(score_tokens(spec, config, "bert."));
  return spec;
}

static Result<ModelSpec> describe_roberta_token_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config, "roberta."));
  TRY_VOID(shift_positions(spec, config));
  TRY_VOID(score_tokens(spec, config, "roberta."));
  return spec;
}

static Result<ModelSpec> describe_colbert(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config, "bert."));
  HeadLayer linear{.name = "linear", .bias = false};
  TRY(linear.outputs, config.integer("dim", {1, 1 << 16}, 128));
  spec.head = Head{.each_token = true, .normalise = true, .layers = {std::move(linear)}};
  spec.names.ignorable.emplace_back("bert.pooler.*");
  return spec;
}

// SPLADE (Formal et al., "SPLADE v2", 2021): a weight for each token of the vocabulary, from the head of the
// masked language model.
static Result<ModelSpec> describe_splade(const Config& config) {
  TRY_VOID(refuse(config, "tie_word_embeddings", false));
  TRY(ModelSpec spec, describe_encoder(config, "bert."));
  const NormSpec norm = spec.embedding.norm;
  spec.head = Head{.of_tokens = true,
                   .layers = {{.name = "cls.predictions.transform.dense",
                               .outputs = spec.dim,
                               .activation = spec.layers[0].mlp().activation,
                               .norm = norm,
                               .norm_name = "cls.predictions.transform.LayerNorm"},
                              {.name = "bert.embeddings.word_embeddings",
                               .outputs = spec.vocab,
                               .bias_name = "cls.predictions.bias"}}};
  spec.names.ignorable = {"*embeddings.position_ids", "bert.pooler.*", "cls.seq_relationship.*",
                          "cls.predictions.decoder.*"};
  return spec;
}

static Result<ModelSpec> describe_roberta(const Config& config) {
  TRY(const std::string kind, config.text("position_embedding_type", "absolute"));
  return kind == "rotary" ? describe_first_jina_v3(config) : describe_roberta_embedder(config, "");
}

// BGE-M3 (Chen et al., "M3-Embedding", 2024) is an XLM-RoBERTa that also computes a vector for each token
// (for late interaction) and a weight for each token (for sparse retrieval).
static Result<ModelSpec> describe_bge_m3(const Config& config) {
  TRY(ModelSpec spec, describe_roberta(config));
  const Config::Range tokens{0, spec.vocab - 1};
  TRY(const int first, config.integer("bos_token_id", tokens, 0));
  TRY(const int last, config.integer("eos_token_id", tokens, 2));
  spec.token_heads = {
      {.each_token = true,
       .normalise = true,
       .layers = {{.name = "colbert_linear", .outputs = spec.dim, .file = "colbert_linear.pt"}},
       .left_out_first = first},
      {.each_token = true,
       .layers = {{.name = "sparse_linear", .outputs = 1, .file = "sparse_linear.pt"}},
       .labels = {"weight"},
       .label_activation = LabelActivation::relu,
       .left_out_first = first,
       .left_out_last = last}};
  return spec;
}

static Result<ModelSpec> describe_roberta_filler(const Config& config) {
  return describe_roberta_embedder(config, "roberta.");
}

static Result<ModelSpec> describe_roberta_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_encoder(config, "roberta."));
  TRY_VOID(shift_positions(spec, config));
  TRY(spec.head, read_classifier(config));
  set_layers(*spec.head, spec.dim, "classifier.dense", "classifier.out_proj");
  return spec;
}

std::span<const Family> bert_families() {
  static constexpr Family kRows[] = {
      {"BertForMaskedLM", describe_bert_filler},
      {"BertForSequenceClassification", describe_bert_classifier},
      {"BertForTokenClassification", describe_bert_token_classifier},
      {"BertModel", describe_bert},
      {"BertSpladeSparseEmbeddingModel", describe_splade},
      {"BgeM3EmbeddingModel", describe_bge_m3},
      {"HF_ColBERT", describe_colbert},
      {"RobertaForMaskedLM", describe_roberta_filler},
      {"RobertaForSequenceClassification", describe_roberta_classifier},
      {"RobertaForTokenClassification", describe_roberta_token_classifier},
      {"RobertaModel", describe_roberta},
      {"XLMRobertaForMaskedLM", describe_roberta_filler},
      {"XLMRobertaForSequenceClassification", describe_roberta_classifier},
      {"XLMRobertaForTokenClassification", describe_roberta_token_classifier},
      {"XLMRobertaModel", describe_roberta},
  };
  return kRows;
}

}  // namespace octavo
