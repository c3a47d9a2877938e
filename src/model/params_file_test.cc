#include "model/params_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "model/families/families.h"
#include "model/generation_config.h"

namespace octavo {
namespace {

using testing::HasSubstr;

// Returns a params.json with `more` fields, each with a comma before it.
std::string params(std::string_view more) {
  return fmt::format(R"({{"dim":64,"n_layers":4,"n_heads":4,"n_kv_heads":2,"head_dim":16,"hidden_dim":96,
    "norm_eps":1e-5,"vocab_size":100,"rope_theta":1e6{}}})",
                     more);
}

Result<ModelSpec> spec_of(std::string_view more) {
  TRY(const Config config, parse_params(params(more)));
  return describe(config);
}

std::string error_of(std::string_view more) {
  const auto spec = spec_of(more);
  return spec ? "" : spec.error().message;
}

TEST(ParamsFile, IsAMistralWithItsOwnNames) {
  const auto spec = spec_of(R"(,"sliding_window":7,"max_seq_len":300)");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->architecture, "MistralForCausalLM");
  EXPECT_EQ(spec->layers.size(), 4U);
  EXPECT_EQ(spec->layers[0].attention().mask.window, 7);
  EXPECT_EQ(spec->max_positions, 300);
  EXPECT_EQ(spec_of(R"(,"max_seq_len":300,"max_position_embeddings":400)")->max_positions, 400);
  EXPECT_TRUE(spec->ropes[0].interleaved);
  EXPECT_EQ(spec->names.embedding.tokens, "tok_embeddings");
}

// transformers' defaults for config.json do not fit Mistral's models.
TEST(ParamsFile, WhatIsLeftOutIsNotAnotherModels) {
  EXPECT_EQ(spec_of("")->layers[0].attention().mask.window, 0);
  const auto none = parse_params(R"({"dim":64,"n_layers":4})");
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("params.json: n_heads is missing"));
}

TEST(ParamsFile, WindowsOfSomeLayers) {
  const auto spec = spec_of(R"(,"sliding_window":[null,7])");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->layers[0].attention().mask.window, 0);
  EXPECT_EQ(spec->layers[3].attention().mask.window, 7);
  EXPECT_THAT(error_of(R"(,"sliding_window":[8,7])"), HasSubstr("windows of several sizes"));
}

TEST(ParamsFile, ApplyScaleSaysWhetherYarnStretchesScores) {
  const std::string yarn = R"(,"yarn":{"factor":4,"original_max_position_embeddings":32)";
  EXPECT_GT(spec_of(yarn + "}")->ropes[0].scaling.attention_factor, 1.1);
  EXPECT_EQ(spec_of(yarn + R"(,"apply_scale":false})")->ropes[0].scaling.attention_factor, 1);
}

TEST(ParamsFile, TextsEndAsMistralsDo) {
  const ScratchDirectory folder;
  EXPECT_TRUE(load_generation_config(folder.path())->eos_ids.empty());
  folder.write("params.json", params(""));
  EXPECT_EQ(load_generation_config(folder.path())->eos_ids, std::vector<std::int32_t>{2});
  folder.write("generation_config.json", R"({"eos_token_id":7})");
  EXPECT_EQ(load_generation_config(folder.path())->eos_ids, std::vector<std::int32_t>{7});
}

TEST(ParamsFile, ErrorsNameItsFields) {
  EXPECT_THAT(
      error_of(R"(,"quantization":{"qformat_weight":"nvfp4"})"),
      HasSubstr(
          R"(params.json: quantization.qformat_weight is "nvfp4", which is not supported: must be fp8_e4m3)"));
  EXPECT_THAT(error_of(R"(,"moe":{"num_experts":4})"), HasSubstr("moe.num_experts_per_tok is missing"));
  EXPECT_THAT(error_of(R"(,"moe":{"num_experts":4,"num_experts_per_tok":5})"),
              HasSubstr("params.json: moe.num_experts_per_tok is 5"));
  EXPECT_THAT(error_of(R"(,"moe":{"num_experts":4,"num_experts_per_tok":2,"use_load_balancing_bias":true})"),
              HasSubstr("use_load_balancing_bias true"));
  EXPECT_THAT(error_of(R"(,"model_type":"mamba")"), HasSubstr("model_type"));
  EXPECT_THAT(error_of(R"(,"tied_embeddings":3)"), HasSubstr("params.json: tied_embeddings must be"));
}

}  // namespace
}  // namespace octavo
