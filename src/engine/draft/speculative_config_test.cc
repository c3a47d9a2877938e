#include "engine/draft/speculative_config.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// Returns the error as "field: message".
std::string config_error(std::string_view json) {
  const auto options = parse_speculative_config(json);
  return options ? "" : fmt::format("{}: {}", options.error().field, options.error().message);
}

TEST(SpeculativeConfig, Ngram) {
  const auto options = parse_speculative_config(
      R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4, "prompt_lookup_min": 2})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->num_speculative_tokens, 3);
  const auto& ngram = std::get<NgramOptions>(options->method);
  EXPECT_EQ(ngram.prompt_lookup_min, 2);
  EXPECT_EQ(ngram.prompt_lookup_max, 4);
}

TEST(SpeculativeConfig, SuffixHasVllmsDefaults) {
  const auto options = parse_speculative_config(R"({"method": "suffix", "num_speculative_tokens": null})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->num_speculative_tokens, 24);
  const auto& suffix = std::get<SuffixOptions>(options->method);
  EXPECT_EQ(suffix.max_tree_depth, 24);
  EXPECT_EQ(suffix.max_cached_requests, 10000);
  EXPECT_EQ(suffix.max_spec_factor, 1.0);
  EXPECT_EQ(suffix.min_token_prob, 0.1);
  const auto given = parse_speculative_config(
      R"({"method": "suffix", "suffix_decoding_max_tree_depth": 8, "suffix_decoding_max_cached_requests": 0,
          "suffix_decoding_max_spec_factor": 2, "suffix_decoding_min_token_prob": 0.5})");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->num_speculative_tokens, 8);
  EXPECT_EQ(std::get<SuffixOptions>(given->method).max_spec_factor, 2.0);
}

TEST(SpeculativeConfig, AModelMeansADraftModel) {
  for (const char* json :
       {R"({"model": "a/b", "num_speculative_tokens": 4, "draft_sample_method": "greedy"})",
        R"({"model": "a/b", "num_speculative_tokens": 3, "draft_sample_method": "greedy",
            "speculative_token_tree": "[(0,), (0, 0), (0, 0, 0)]"})",
        R"({"method": "draft_model", "model": "a/b", "num_speculative_tokens": 4,
                               "draft_sample_method": "greedy", "draft_tensor_parallel_size": 1,
                               "num_speculative_tokens_per_batch_size": [[1, 8, 4], [9, 64, 0]]})"}) {
    const auto options = parse_speculative_config(json);
    ASSERT_TRUE(options) << options.error().message;
    ASSERT_NE(options->draft_model(), nullptr);
    EXPECT_EQ(options->draft_model()->model, "a/b");
    EXPECT_FALSE(options->draft_model()->drawn);
  }
}

TEST(SpeculativeConfig, Heads) {
  using enum HeadOptions::Kind;
  const auto head = [](const char* json) {
    const auto options = parse_speculative_config(json);
    EXPECT_TRUE(options) << options.error().message;
    return std::get<HeadOptions>(options->method);
  };
  for (const char* json :
       {R"({"method": "mtp", "num_speculative_tokens": 2})", R"({"method": "deepseek_mtp"})"}) {
    EXPECT_EQ(head(json).kind, mtp);
    EXPECT_EQ(head(json).model, "");
    EXPECT_TRUE(head(json).drawn);
  }
  EXPECT_EQ(head(R"({"method": "eagle", "model": "a/b", "num_speculative_tokens": 2})").kind, eagle);
  const HeadOptions third = head(
      R"({"method": "eagle3", "model": "a/b", "num_speculative_tokens": 2, "draft_sample_method": "greedy"})");
  EXPECT_EQ(third.kind, eagle3);
  EXPECT_EQ(third.model, "a/b");
  EXPECT_FALSE(third.drawn);
}

TEST(SpeculativeConfig, HeadsByPosition) {
  using enum PositionHeadOptions::Kind;
  const auto heads = [](const char* json) {
    const auto options = parse_speculative_config(json);
    EXPECT_TRUE(options) << options.error().message;
    return std::get<PositionHeadOptions>(options->method);
  };
  EXPECT_EQ(heads(R"({"method": "medusa", "model": "a/b", "num_speculative_tokens": 3})").kind, medusa);
  const PositionHeadOptions mlp = heads(
      R"({"method": "mlp_speculator", "model": "a/b", "num_speculative_tokens": 3, "draft_sample_method": "greedy"})");
  EXPECT_EQ(mlp.kind, mlp_speculator);
  EXPECT_EQ(mlp.model, "a/b");
  EXPECT_FALSE(mlp.drawn);
}

TEST(SpeculativeConfig, MistakesAreNamed) {
  EXPECT_EQ(config_error("[1]"), "speculative_config: must be a JSON object");
  EXPECT_EQ(
      config_error(
          R"({"model": "x", "num_speculative_tokens": 3, "speculative_token_tree": "[(0,), (1,), (0, 0)]"})"),
      "speculative_token_tree: must be a chain of num_speculative_tokens (3) draft tokens, [(0,), (0, 0), "
      "..], because trees are not supported, got \"[(0,),(1,),(0,0)]\"");
  EXPECT_TRUE(config_error(R"({"method": "lookahead"})").starts_with("method: must be "));
  EXPECT_EQ(config_error(R"({"method": "medusa", "num_speculative_tokens": 4})"),
            "model: must be given: the folder of the heads");
  EXPECT_EQ(config_error(R"({"method": "eagle", "num_speculative_tokens": 4})"),
            "model: must be given: the folder of the EAGLE head");
  EXPECT_EQ(config_error(R"({"method": "mtp", "num_speculative_tokens": 4, "quantization": "int8"})"),
            "speculative_config: field \"quantization\" is not supported with method mtp");
  EXPECT_EQ(config_error(R"({"method": "ngram"})"), "num_speculative_tokens: must be given");
  EXPECT_EQ(config_error(R"({"method": "ngram", "num_speculative_tokens": "4"})"),
            "num_speculative_tokens: must be an integer");
  EXPECT_EQ(config_error(R"({"model": 4, "num_speculative_tokens": 4})"), "model: must be a string");
  EXPECT_EQ(config_error(R"({"method": "draft_model", "num_speculative_tokens": 4})"),
            "model: must be given for draft_model");
  EXPECT_EQ(config_error(R"({"method": "ngram", "num_speculative_tokens": 4, "model": "x"})"),
            "speculative_config: field \"model\" is not supported with method ngram");
  EXPECT_EQ(config_error(R"({"model": "x", "num_speculative_tokens": 4, "draft_tensor_parallel_size": 2})"),
            "draft_tensor_parallel_size: must be 1, because a draft model runs on one rank, got 2");
  EXPECT_EQ(config_error(R"({"model": "x", "num_speculative_tokens": 4, "draft_sample_method": "best"})"),
            "draft_sample_method: must be \"greedy\" or \"probabilistic\", got \"best\"");
  EXPECT_EQ(config_error(R"({"method": "suffix", "suffix_decoding_min_token_prob": "x"})"),
            "suffix_decoding_min_token_prob: must be a number");
  for (const char* ranges : {"4", "[4]", "[[1, 2]]", R"([[1, 2, "x"]])"})
    EXPECT_EQ(
        config_error(
            fmt::format(R"({{"method": "suffix", "num_speculative_tokens_per_batch_size": {}}})", ranges)),
        "num_speculative_tokens_per_batch_size: must be a list of [from, to, tokens], three integers each");
}

}  // namespace
}  // namespace octavo
