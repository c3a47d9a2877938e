#include "model/families/readers.h"

#include <algorithm>
#include <utility>

#include "model/families/bases.h"
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

ModelSpec as_embedder(ModelSpec spec) {
  spec.names.prefixes = {"", "model."};
  spec.head = Head{.pool = spec.bidirectional() ? Pool::mean : Pool::last, .normalise = true};
  return spec;
}

namespace {

// Reads a classifier that uses rows of the output matrix, one per word. A reranker with two words has no
// labels: its score is the second word's logit minus the first word's logit. Otherwise each word is a label.
Result<Head> read_word_classifier(const Config& config, const ModelSpec& spec) {
  TRY(const std::vector<int> ids, config.integers("classifier_token_ids", {0, spec.vocab - 1}));
  TRY(const bool reranker, config.boolean("is_original_qwen3_reranker", false));
  TRY(const std::string method,
      config.text("method", reranker ? "from_2_way_softmax" : "no_post_processing"));
  if (method != "from_2_way_softmax" && method != "no_post_processing")
    return field_failure(
        "method", ErrorCode::unsupported,
        "{} is \"{}\", which is not supported: must be from_2_way_softmax or no_post_processing",
        config.where("method"), method);
  const bool difference = method == "from_2_way_softmax";
  if (difference && ids.size() != 2)
    return invalid("classifier_from_token", "{} names {} tokens, but {} needs 2",
                   config.where("classifier_from_token"), ids.size(), method);
  Head head{.labels = std::vector<std::string>(difference ? 1 : ids.size())};
  for (std::size_t i = 0; i < head.labels.size(); ++i) head.labels[i] = fmt::format("LABEL_{}", i);
  head.label_activation = head.labels.size() == 1 ? LabelActivation::sigmoid : LabelActivation::softmax;
  head.layers = {
      {.name = spec.logits.tied ? spec.names.prefixes[0] + spec.names.embedding.tokens : spec.names.lm_head,
       .outputs = static_cast<int>(head.labels.size()),
       .bias = false,
       .rows = ids,
       .difference = difference}};
  if (difference) std::ranges::reverse(head.layers[0].rows);
  return head;
}

}  // namespace

Result<ModelSpec> as_classifier(ModelSpec spec, const Config& config) {
  Head head;
  if (config.has("classifier_token_ids")) {
    TRY(head, read_word_classifier(config, spec));
  } else {
    TRY(head, read_classifier(config));
    head.layers = {{.name = "score", .outputs = static_cast<int>(head.labels.size()), .bias = false}};
  }
  head.pool = Pool::last;
  spec.head = std::move(head);
  return spec;
}

// Qwen2.5-Math-PRM (Zhang et al., 2025): scores of labels for each token.
static Result<ModelSpec> describe_qwen2_process_reward(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2(config));
  TRY(Head head, read_classifier(config));
  head.each_token = true;
  head.layers = {{.name = "score.0", .outputs = spec.dim, .activation = Activation::relu},
                 {.name = "score.2", .outputs = static_cast<int>(head.labels.size())}};
  spec.head = std::move(head);
  return spec;
}

// Qwen2.5-Math-RM (Yang et al., 2024) and InternLM2-Reward (Cai et al., 2024): one score for each token.
static Result<ModelSpec> describe_qwen2_reward(const Config& config) {
  TRY(ModelSpec spec, describe_qwen2_process_reward(config));
  spec.head->labels = {"LABEL_0"};  // the labels in config.json are ignored
  spec.head->label_activation = LabelActivation::sigmoid;
  spec.head->layers.back().outputs = 1;
  return spec;
}

static Result<ModelSpec> describe_internlm2_reward(const Config& config) {
  TRY(ModelSpec spec, describe_internlm2(config));
  spec.head = Head{.each_token = true,
                   .layers = {{.name = "v_head", .outputs = 1, .bias = false}},
                   .labels = {"LABEL_0"},
                   .label_activation = LabelActivation::sigmoid};
  return spec;
}

namespace {

// Reads the type of pooling. Without a fallback, the field is required.
Result<Pool> read_pooling(const Config& config, std::optional<std::string> fallback = {}) {
  constexpr std::pair<std::string_view, Pool> kPools[] = {
      {"avg", Pool::mean}, {"cls", Pool::first}, {"last", Pool::last}};
  TRY(const std::string pooling, config.text("pooling", std::move(fallback)));
  const auto* found = std::ranges::find(kPools, pooling, &std::pair<std::string_view, Pool>::first);
  if (found == std::end(kPools))
    return field_failure("pooling", ErrorCode::unsupported,
                         "{} is \"{}\", which is not supported: must be avg, cls or last",
                         config.where("pooling"), pooling);
  return found->second;
}

ModelSpec seeing_both_ways(ModelSpec spec) {
  for (LayerSpec& layer : spec.layers) layer.attention().mask.causal = false;
  return spec;
}

}  // namespace

// voyage-4-nano (Voyage AI, 2026): Qwen3 with bidirectional attention, and a matrix after the mean.
static Result<ModelSpec> describe_voyage(const Config& config) {
  TRY(ModelSpec spec, describe_qwen3(config));
  spec = as_embedder(seeing_both_ways(std::move(spec)));
  TRY(const std::vector<std::string> outputs, config.numbered_texts("id2label"));
  HeadLayer linear{.name = "linear", .bias = false};
  TRY(linear.outputs, config.integer("num_labels", {1, 1 << 16}, static_cast<int>(outputs.size())));
  spec.head->layers.push_back(std::move(linear));
  return spec;
}

// EuroBERT (Boizard et al., "EuroBERT: Scaling Multilingual Encoders for European Languages", 2025): Llama
// with bidirectional attention.
static Result<ModelSpec> describe_eurobert(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  spec = as_embedder(seeing_both_ways(std::move(spec)));
  // Checkpoints of the masked language model also have an output matrix.
  spec.names.ignorable.emplace_back("lm_head.*");
  return spec;
}

// NVIDIA's retrievers in the Nemotron family (2025): Llama with bidirectional attention.
static Result<ModelSpec> describe_llama_both_ways(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  spec = as_embedder(seeing_both_ways(std::move(spec)));
  TRY(spec.head->pool, read_pooling(config));
  return spec;
}

static Result<ModelSpec> describe_llama_both_ways_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_llama(config));
  TRY(spec, as_classifier(seeing_both_ways(std::move(spec)), config));
  TRY(spec.head->pool, read_pooling(config));
  return spec;
}

// Giga-Embeddings (Sber, 2026): DeepSeek-V3 with bidirectional attention.
static Result<ModelSpec> describe_deepseek_both_ways(const Config& config) {
  TRY(ModelSpec spec, describe_deepseek_v3(config));
  spec.predictor.reset();
  for (LayerSpec& layer : spec.layers) std::get<LatentAttention>(layer.mixer).causal = false;
  return as_embedder(std::move(spec));
}

// Jina v5 (Jina AI, 2026): Qwen3 or, with is_decoder false, EuroBERT. open_checkpoint() adds the adapter of a
// task to the matrices.
static Result<ModelSpec> describe_jina_v5(const Config& config) {
  TRY(const bool decoder, config.boolean("is_decoder", true));
  TRY(ModelSpec spec, decoder ? describe_qwen3(config) : describe_eurobert(config));
  if (decoder) spec = as_embedder(std::move(spec));
  spec.head->pool = Pool::last;
  return spec;
}

// Llama-Nemotron-Embed-VL (NVIDIA, 2026): llm_config is the config.json of a language model in the row above.
// Images are not supported.
static Result<ModelSpec> describe_llama_nemotron_vl(const Config& config) {
  TRY(const std::optional<Config> inner, config.object("llm_config"));
  if (!inner)
    return invalid("llm_config", "{} is missing, but must have the language model's configuration",
                   config.where("llm_config"));
  Config text = *inner;
  text.set_defaults(field_defaults("LlamaBidirectionalModel"));
  TRY(ModelSpec spec, describe_llama(text));
  spec = as_embedder(seeing_both_ways(std::move(spec)));
  TRY(spec.head->pool, read_pooling(config.has("pooling") ? config : text, "avg"));
  spec.names.prefixes = {"language_model.", "language_model.model.", "model.language_model."};
  for (const char* other : {"vision_model.*", "model.vision_model.*", "mlp1.*", "model.mlp1.*"})
    spec.names.ignorable.emplace_back(other);
  return spec;
}

static Result<ModelSpec> describe_llama_nemotron_vl_classifier(const Config& config) {
  TRY(ModelSpec spec, describe_llama_nemotron_vl(config));
  const Pool pool = spec.head->pool;
  TRY(spec, as_classifier(std::move(spec), config));
  spec.head->pool = pool;
  return spec;
}

std::span<const Family> readers_families() {
  static constexpr Family kRows[] = {
      {"DeepseekV3BidirectionalModel", describe_deepseek_both_ways},
      {"EuroBertForMaskedLM", describe_eurobert},
      {"EuroBertModel", describe_eurobert},
      {"InternLM2ForRewardModel", describe_internlm2_reward},
      {"JinaEmbeddingsV5Model", describe_jina_v5},
      {"LlamaBidirectionalForSequenceClassification", describe_llama_both_ways_classifier},
      {"LlamaBidirectionalModel", describe_llama_both_ways},
      {"LlamaNemotronVLForSequenceClassification", describe_llama_nemotron_vl_classifier, true},
      {"LlamaNemotronVLModel", describe_llama_nemotron_vl, true},
      {"Qwen2ForProcessRewardModel", describe_qwen2_process_reward},
      {"Qwen2ForRewardModel", describe_qwen2_reward},
      {"VoyageQwen3BidirectionalEmbedModel", describe_voyage},
  };
  return kRows;
}

}  // namespace octavo
