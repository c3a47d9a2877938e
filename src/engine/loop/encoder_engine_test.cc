// Tests engines of embedding models on every backend, with single texts and with batches.
#include "engine/testing/encoder_rig.h"

namespace octavo {
namespace {

using namespace encoder_rig;

// Returns the expected pooling type of a model without files of Sentence Transformers.
std::string_view made_by(std::string_view name) {
  if (name.ends_with("classifier") || name.ends_with("reranker")) return "scores";
  if (name.starts_with("col") || name.ends_with("-reward") || name.ends_with("-tokens")) return "tokens";
  if (name == "llama-both-ways" || name == "voyage" || name.starts_with("jina_v3") || name == "nomic_bert" ||
      name.starts_with("nomic_moe") || name == "embedding_gemma" || name == "eurobert" ||
      name == "t5-encoder" || name == "deepseek-both-ways" || name == "embedding_gemma2" ||
      name == "nemotron-vl-text")
    return "mean";
  if (name == "splade") return "words";
  return name == "qwen3-embedder" || name == "gemma2-embedder" || name.ends_with("p-text") ||
                 name.starts_with("jina-v5")
             ? "last"
             : "first";
}

TEST_P(EncoderEngine, GivesTheNumbersOfTransformers) { agree(kRoot + GetParam(), made_by(GetParam())); }

INSTANTIATE_TEST_SUITE_P(
    Families, EncoderEngine,
    testing::Values("bert", "bert-classifier", "bert-filler", "bert-reranker", "bert-tokens",
                    "llama-both-ways", "llama-both-ways-reranker", "internlm2-reward", "modernbert-tokens",
                    "qwen2-reward", "voyage", "xlm-roberta-tokens", "colbert", "colbert-modernbert",
                    "clip-text", "colbert-jina", "colbert-lfm2", "colmodernvbert", "colqwen3", "colqwen3_5",
                    "embedding_gemma", "eurobert", "gemma2-embedder", "gpt2-classifier", "gte",
                    "gte-classifier", "jamba-classifier", "jina_v3", "jina_v3-published", "modernbert",
                    "modernbert-classifier", "nomic_bert", "nomic_moe", "qwen2-process-reward",
                    "qwen3-embedder", "qwen3-reranker", "roberta", "roberta-filler", "t5-encoder",
                    "xlm-roberta-classifier", "deepseek-both-ways", "embedding_gemma2", "jina-v5",
                    "jina-v5-nano", "lfm2-both-ways", "nemotron-vl-text", "siglip-text", "splade"),
    test_name);

// Some of the models as GGUF files, which tools/goldens/gguf_encoders.py creates.
class EncoderGgufFile : public EncoderEngine {};
INSTANTIATE_TEST_SUITE_P(Families, EncoderGgufFile,
                         testing::Values("bert", "embedding_gemma", "eurobert", "jina_v3", "modernbert",
                                         "modernbert-classifier", "nomic_bert", "nomic_moe-gguf",
                                         "qwen3-embedder", "qwen3-word-reranker", "roberta", "t5-encoder",
                                         "xlm-roberta-classifier"),
                         test_name);

TEST_P(EncoderGgufFile, GivesTheSame) { agree(kRoot + GetParam() + "/model.gguf", made_by(GetParam())); }

// Models that classify a pair of texts by the logits of two tokens: 7 ("yes") and 11 ("no").
constexpr const char* kOfWords = R"("classifier_token_ids": [11, 7]})";
class WordReranker : public EncoderEngine {};
INSTANTIATE_TEST_SUITE_P(Families, WordReranker,
                         testing::Values("qwen3-word-reranker", "qwen3-word-reranker-untied"), test_name);

TEST_P(WordReranker, ScoresByTwoRowsOfTheOutputMatrix) {
  EngineOptions options;
  options.model.hf_overrides = fmt::format(
      R"({{"architectures": ["Qwen3ForSequenceClassification"], "is_original_qwen3_reranker": true, {})",
      kOfWords);
  agree(kRoot + GetParam(), "scores", options);
  options.model.hf_overrides = fmt::format(R"({{"method": "from_2_way_softmax", {})", kOfWords);
  options.model.convert = "classify";
  agree(kRoot + GetParam(), "scores", options);
  const auto engine = encoder_engine_of(kRoot + GetParam(), {}, "cpu", "auto", options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->info().tasks.default_task, Task::classify);
  EXPECT_EQ((*engine)->info().tasks.pooled_size, 1);
  EXPECT_EQ((*engine)->info().tasks.score_activation, ScoreActivation::sigmoid);
  // Without `method`, each of these tokens is a label.
  options.model.hf_overrides = fmt::format("{{{}", kOfWords);
  const auto words = encoder_engine_of(kRoot + GetParam(), {}, "cpu", "auto", options);
  ASSERT_TRUE(words.has_value()) << words.error().message;
  EXPECT_EQ((*words)->info().tasks.score_activation, ScoreActivation::softmax);
  const std::vector<Text> texts = read_texts(kRoot + GetParam(), "scores");
  const auto labels = pooled(**words, texts), scores = pooled(**engine, texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_NEAR(labels[i].at(1) - labels[i].at(0), scores[i].at(0), 1e-4) << i;
}

TEST_P(WordReranker, NeedsTwoWords) {
  const auto error = [&](const std::string& overrides) {
    EngineOptions options;
    options.model.convert = "classify";
    options.model.hf_overrides = overrides;
    const auto engine = encoder_engine_of(kRoot + GetParam(), {}, "cpu", "auto", options);
    return engine ? "none" : engine.error().message;
  };
  EXPECT_THAT(error(R"({"classifier_token_ids": [3], "is_original_qwen3_reranker": true})"),
              testing::HasSubstr("needs 2"));
  EXPECT_THAT(error(R"({"classifier_token_ids": [3, 5000]})"), testing::HasSubstr("classifier_token_ids"));
  EXPECT_THAT(error(R"({"classifier_token_ids": [3, 5], "method": "guess"})"), testing::HasSubstr("guess"));
  EXPECT_THAT(error("{}"), testing::HasSubstr("score"));  // the model has no matrix "score"
  EXPECT_THAT(error("[1]"), testing::HasSubstr("JSON object"));
}

}  // namespace
}  // namespace octavo
