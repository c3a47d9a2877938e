#include "model/gguf_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/testing/scratch_directory.h"
#include "kernels/backends.h"
#include "model/generation_config.h"
#include "model/inspect.h"
#include "model/model.h"
#include "weights/testing/gguf.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;

class GgufSpec : public testing::Test {
 protected:
  // Returns the metadata of a llama file, without the key `without`.
  static GgufBuilder llama(std::string_view without = "") {
    GgufBuilder file;
    file.text("general.architecture", "llama");
    for (const auto& [name, value] :
         {std::pair("embedding_length", 64u), std::pair("block_count", 3u),
          std::pair("context_length", 4096u), std::pair("feed_forward_length", 128u),
          std::pair("attention.head_count", 4u), std::pair("attention.head_count_kv", 2u),
          std::pair("rope.dimension_count", 16u)})
      if (name != without) file.u32(std::string("llama.") + name, value);
    file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    file.tensor("token_embd.weight", {64, 10}, kF32, std::string(64 * 10 * 4, '\0'));
    return file;
  }
  Result<ModelSpec> spec(const GgufBuilder& file) {
    directory_.write("model.gguf", file.build());
    return load_spec(path_);
  }
  std::string error(const GgufBuilder& file) {
    const auto made = spec(file);
    return made ? "accepted" : made.error().message;
  }

  ScratchDirectory directory_;
  const fs::path path_ = directory_ / "model.gguf";
};

TEST_F(GgufSpec, BaichuanOfFortyLayersHasAlibi) {
  for (const std::uint32_t layers : {32u, 40u}) {
    GgufBuilder file;
    file.text("general.architecture", "baichuan");
    for (const auto& [name, value] :
         {std::pair("embedding_length", 64u), std::pair("block_count", layers),
          std::pair("context_length", 4096u), std::pair("feed_forward_length", 128u),
          std::pair("attention.head_count", 4u)})
      file.u32(std::string("baichuan.") + name, value);
    file.f32("baichuan.attention.layer_norm_rms_epsilon", 1e-6F);
    file.tensor("token_embd.weight", {64, 10}, kF32, std::string(64 * 10 * 4, '\0'));
    const auto made = spec(file);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(made->max_positions, 4096);
    EXPECT_EQ(made->ropes.empty(), layers == 40);
    EXPECT_EQ(made->layers[0].attention().scores.slopes.size(), layers == 40 ? 4u : 0u);
  }
}

TEST_F(GgufSpec, WhatArchitecturesHaveNotHereIsNamed) {
  const auto file = [](const std::string& architecture) {
    GgufBuilder made;
    made.text("general.architecture", architecture);
    for (const auto& [name, value] :
         {std::pair("embedding_length", 64u), std::pair("block_count", 2u),
          std::pair("context_length", 4096u), std::pair("feed_forward_length", 128u),
          std::pair("attention.head_count", 4u)})
      made.u32(architecture + "." + name, value);
    made.tensor("token_embd.weight", {64, 10}, kF32, std::string(64 * 10 * 4, '\0'));
    return made;
  };
  EXPECT_THAT(error(file("llama4").u32("llama4.attention.sliding_window", 0)),
              HasSubstr("llama4.attention.sliding_window is 0"));

  const auto numbers = [](const std::vector<std::int32_t>& items) {
    std::string bytes = GgufBuilder::raw(GgufType::i32) + GgufBuilder::raw(std::uint64_t{items.size()});
    for (const std::int32_t item : items) bytes += GgufBuilder::raw(item);
    return bytes;
  };
  GgufBuilder jamba = file("jamba").f32("jamba.attention.layer_norm_rms_epsilon", 1e-5F);
  jamba.u32("jamba.ssm.inner_size", 128)
      .value("jamba.attention.head_count_kv", GgufType::list, numbers({0, 2, 2, 0}));
  EXPECT_THAT(error(jamba), HasSubstr("layers with attention must repeat with a fixed period"));

  GgufBuilder deci = file("deci").f32("deci.attention.layer_norm_rms_epsilon", 1e-5F);
  deci.value("deci.attention.head_count_kv", GgufType::list, numbers({2, 0}));
  EXPECT_THAT(error(deci), HasSubstr("replace_with_linear is true, which is not supported"));

  EXPECT_THAT(error(file("bert")
                        .u32("bert.pooling_type", 4)
                        .tensor("cls.output.weight", {64, 1}, kF32, std::string(64 * 4, '\0'))),
              HasSubstr("bert.pooling_type is 4 (scores), but the tensor cls.weight is missing"));

  const auto nomic = [&] {
    return file("nomic-bert-moe")
        .f32("nomic-bert-moe.attention.layer_norm_epsilon", 1e-5F)
        .u32("nomic-bert-moe.moe_every_n_layers", 2)
        .tensor("token_types.weight", {64, 1}, kF32, std::string(64 * 4, '\0'));
  };
  EXPECT_THAT(error(nomic()), HasSubstr("nomic-bert-moe.expert_count is missing"));
  EXPECT_THAT(error(nomic().u32("nomic-bert-moe.expert_count", 4).u32("nomic-bert-moe.expert_used_count", 5)),
              HasSubstr("nomic-bert-moe.expert_used_count is 5, but must be in [1, 4]"));
  EXPECT_THAT(error(file("t5encoder")
                        .f32("t5encoder.attention.layer_norm_rms_epsilon", 1e-6F)
                        .u32("t5encoder.attention.key_length", 16)
                        .u32("t5encoder.attention.relative_buckets_count", 6)),
              HasSubstr("t5encoder.attention.relative_buckets_count is 6, but must be a multiple of 4"));

  GgufBuilder gemma =
      file("gemma4").value("gemma4.attention.sliding_window_pattern", GgufType::list, numbers({1, 0}));
  std::string divisors;
  for (const float by : {1.0F, 8.0F, 1e30F}) divisors += GgufBuilder::raw(by);
  gemma.tensor("rope_freqs.weight", {3}, kF32, divisors);
  EXPECT_THAT(error(gemma), HasSubstr("rope_freqs.weight divides the angle of pair 1 by 8"));
}

TEST_F(GgufSpec, NumbersOfActivations) {
  const auto apertus = [](std::vector<float> alphas, float beta) {
    GgufBuilder file;
    file.text("general.architecture", "apertus");
    for (const auto& [name, value] :
         {std::pair("embedding_length", 64u), std::pair("block_count", 2u),
          std::pair("context_length", 4096u), std::pair("feed_forward_length", 128u),
          std::pair("attention.head_count", 4u)})
      file.u32(std::string("apertus.") + name, value);
    std::string items = GgufBuilder::raw(GgufType::f32) + GgufBuilder::raw(std::uint64_t{alphas.size()});
    for (const float alpha : alphas) items += GgufBuilder::raw(alpha);
    file.value("xielu.alpha_p", GgufType::list, items).f32("xielu.alpha_n", 0.25F);
    file.f32("xielu.beta", beta).f32("xielu.eps", -9.98e-7F);
    file.tensor("token_embd.weight", {64, 10}, kF32, std::string(64 * 10 * 4, '\0'));
    return file;
  };
  const auto made = spec(apertus({0.5F, 0.75F}, 0.5F));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_THAT(*std::get<Mlp>(made->layers[1].feed_forward).slopes, ElementsAre(0.75F, 0.25F));
  EXPECT_THAT(error(apertus({0.5F}, 0.5F)),
              HasSubstr("xielu.alpha_p has 1 items, but the model has 2 layers"));
  EXPECT_THAT(error(apertus({0.5F, NAN}, 0.5F)), HasSubstr("xielu.alpha_p: all values must be finite"));
  EXPECT_THAT(error(apertus({0.5F, 0.5F}, 0.7F)), HasSubstr("only 0.5 is supported"));
}

TEST_F(GgufSpec, AFileThatSaysHowItPoolsMakesVectors) {
  EXPECT_FALSE(spec(llama())->head.has_value());
  EXPECT_FALSE(spec(llama().u32("llama.pooling_type", 0))->head.has_value());
  const auto made = spec(llama().u32("llama.pooling_type", 3));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->head->pool, Pool::last);
  EXPECT_THAT(error(llama().u32("llama.pooling_type", 5)),
              HasSubstr("llama.pooling_type is 5, which is not supported: must be"));
  EXPECT_THAT(error(llama().u32("llama.pooling_type", 4)),
              HasSubstr("llama.pooling_type is 4 (scores), but the tensor cls.output.weight is missing"));
  // Models with bidirectional attention do not generate text.
  EXPECT_THAT(error(llama().value("llama.attention.causal", GgufType::boolean, std::string(1, '\0'))),
              HasSubstr("set --runner pooling"));
}

TEST_F(GgufSpec, Llama) {
  const auto made = spec(llama().f32("llama.rope.freq_base", 5e5F));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->architecture, "LlamaForCausalLM");
  EXPECT_EQ(made->vocab, 10);
  EXPECT_EQ(made->dim, 64);
  EXPECT_EQ(made->layers.size(), 3);
  EXPECT_EQ(made->max_positions, 4096);
  EXPECT_TRUE(made->logits.tied);
  EXPECT_EQ(made->layers[0].attention().kv_heads, 2);
  EXPECT_EQ(made->ropes[0].theta, 5e5);
  EXPECT_TRUE(made->ropes[0].interleaved);
  EXPECT_THAT(made->names.attention.qkv, ElementsAre("attn_q", "attn_k", "attn_v"));
}

TEST_F(GgufSpec, EveryShareOfAHeadTurnsThatManyElements) {
  for (std::uint32_t dims = 2; dims <= 16; dims += 2) {
    const auto made = spec(llama("rope.dimension_count").u32("llama.rope.dimension_count", dims));
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(made->ropes[0].rotary_dim, dims);
  }
}

TEST_F(GgufSpec, Window) {
  const auto made = spec(llama().u32("llama.attention.sliding_window", 100));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->layers[2].attention().mask.window, 100);
  const auto none = spec(llama().u32("llama.attention.sliding_window", 0));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->layers[2].attention().mask.window, 0);
}

TEST_F(GgufSpec, ALlamaWithExpertsIsMixtral) {
  const auto made = spec(llama().u32("llama.expert_count", 4).u32("llama.expert_used_count", 2));
  ASSERT_TRUE(made.has_value());
  const auto& experts = std::get<octavo::Experts>(made->layers[2].feed_forward);
  EXPECT_EQ(experts.count, 4);
  EXPECT_EQ(experts.router.chosen, 2);
  EXPECT_EQ(experts.expert.hidden, 128);
  const auto dense = spec(llama().u32("llama.expert_count", 0));
  ASSERT_TRUE(dense.has_value());
  EXPECT_EQ(std::get<Mlp>(dense->layers[2].feed_forward).hidden, 128);
}

// block_count includes multi-token prediction layers, which are not part of the network.
TEST_F(GgufSpec, LayersThatPredictAreLeftOut) {
  GgufBuilder file;
  file.text("general.architecture", "glm4moe");
  for (const auto& [name, value] :
       {std::pair("embedding_length", 64u), std::pair("block_count", 4u), std::pair("context_length", 4096u),
        std::pair("feed_forward_length", 128u), std::pair("attention.head_count", 4u),
        std::pair("attention.head_count_kv", 2u), std::pair("attention.key_length", 16u),
        std::pair("expert_count", 8u), std::pair("expert_used_count", 2u),
        std::pair("expert_feed_forward_length", 32u), std::pair("nextn_predict_layers", 1u)})
    file.u32(std::string("glm4moe.") + name, value);
  file.f32("glm4moe.attention.layer_norm_rms_epsilon", 1e-5F);
  file.tensor("token_embd.weight", {64, 10}, kF32, std::string(64 * 10 * 4, '\0'));
  const auto made = spec(file);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_EQ(made->layers.size(), 3u);
  EXPECT_THAT(made->names.ignorable, testing::Contains("blk.3.*"));
}

TEST_F(GgufSpec, ErrorsNameTheKey) {
  const std::string file = path_.string();
  EXPECT_EQ(error(llama("block_count")), file + ": llama.block_count is missing");
  EXPECT_EQ(error(llama("block_count").u32("llama.block_count", 0)),
            file + ": llama.block_count is 0, but must be in [1, 1024]");
  EXPECT_EQ(error(llama("block_count").text("llama.block_count", "two")),
            file + ": llama.block_count must be a number");
  EXPECT_EQ(error(llama().f32("llama.rope.freq_base", NAN)),
            file + ": llama.rope.freq_base is nan, but must be in [1, 1000000000000]");
  EXPECT_THAT(error(llama().u32("llama.expert_count", 4).u32("llama.expert_used_count", 5)),
              HasSubstr("llama.expert_used_count is 5, but must be in [1, 4]"));
  EXPECT_THAT(error(llama().u32("llama.expert_count", 4).u32("llama.expert_gating_func", 2)),
              HasSubstr("llama.expert_gating_func is 2, which is not supported here: must be 1"));
  EXPECT_THAT(
      error(llama().text("llama.rope.scaling.type", "spiral")),
      HasSubstr("llama.rope.scaling.type is \"spiral\", which is not supported: must be none, linear, yarn"));
  EXPECT_THAT(error(llama().tensor("rope_freqs.weight", {3}, kF32, std::string(12, '\0'))),
              HasSubstr("must be a list of 8 numbers"));
  EXPECT_THAT(error(llama("attention.head_count_kv").u32("llama.attention.head_count_kv", 3)),
              HasSubstr("llama.attention.head_count 4 must be a multiple"));
  EXPECT_THAT(error(GgufBuilder().text("general.architecture", "rwkv6")),
              HasSubstr("general.architecture is \"rwkv6\", which is not supported: must be one of afmoe, "
                        "apertus, arcee, baichuan, "));
  EXPECT_THAT(error(GgufBuilder()), HasSubstr("general.architecture is \"\""));
  EXPECT_THAT(error(GgufBuilder().text("general.architecture", "llama")),
              HasSubstr("token_embd.weight is missing or is not a matrix"));
}

TEST_F(GgufSpec, GenerationDefaultsAndEndTokens) {
  GgufBuilder file = llama();
  file.texts("tokenizer.ggml.tokens", {"a", "<|im_end|>", "b", "<|end|>", "c"});
  file.value("tokenizer.ggml.token_type", GgufType::list,
             GgufBuilder::raw(GgufType::i32) + GgufBuilder::raw(std::uint64_t{5}) +
                 GgufBuilder::raw(std::int32_t{1}) + GgufBuilder::raw(std::int32_t{3}) +
                 GgufBuilder::raw(std::int32_t{1}) + GgufBuilder::raw(std::int32_t{1}) +
                 GgufBuilder::raw(std::int32_t{1}));
  file.u32("tokenizer.ggml.eos_token_id", 4).u32("tokenizer.ggml.eot_token_id", 1);
  file.f32("general.sampling.temp", 0.5F)
      .value("general.sampling.top_k", GgufType::i32, GgufBuilder::raw(20));
  directory_.write("model.gguf", file.build());
  const auto config = load_generation_config(path_);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_THAT(config->eos_ids, ElementsAre(1, 4));  // "<|end|>" is an ordinary token in this file
  EXPECT_EQ(config->sampling, (boost::json::object{{"temperature", 0.5}, {"top_k", 20.0}}));
  directory_.write("generation_config.json", R"({"temperature": 0.2, "top_p": 0.9, "eos_token_id": 0})");
  const auto both = load_generation_config(path_);
  EXPECT_THAT(both->eos_ids, ElementsAre(1, 4));
  EXPECT_EQ(both->sampling, (boost::json::object{{"temperature", 0.5}, {"top_k", 20.0}, {"top_p", 0.9}}));
}

constexpr const char* kFixture = "tests/data/gguf/llama-q8_0/model.gguf";

TEST_F(GgufSpec, BlocksAreNotQuantisedAgain) {
  Backend backend = make_reference_backend();
  const auto model = Model::load(kFixture, backend, {.quantization = Encoding::int8});
  ASSERT_FALSE(model.has_value());
  EXPECT_THAT(
      model.error().message,
      HasSubstr(
          "must be none, got int8, because every matrix is already quantised (token_embd.weight is Q8_0)"));
}

TEST_F(GgufSpec, InfiniteScaleIsFound) {
  std::string bytes;
  {
    std::ifstream in(kFixture, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto gguf = Gguf::open(kFixture);
  ASSERT_TRUE(gguf.has_value());
  const StoredTensor& down = *gguf->find("blk.1.ffn_down.weight");
  const auto offset = static_cast<std::size_t>(down.bytes.data() - gguf->files[0].bytes().data());
  bytes[offset + 34 + 1] = '\x7c';  // the scale of the second block becomes infinite or NaN
  directory_.write("model.gguf", bytes);
  Backend backend = make_reference_backend();
  const auto model = Model::load(path_, backend);
  ASSERT_FALSE(model.has_value());
  EXPECT_THAT(model.error().message,
              HasSubstr("tensor blk.1.ffn_down.weight contains NaN or infinity in Q8_0"));
}

TEST_F(GgufSpec, FactorsOfAnyLengthAreRefused) {
  GgufBuilder file = llama();
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"})
    file.tensor(name, {5000}, kF32, std::string(5000 * 4, '\0'));
  EXPECT_THAT(error(file),
              HasSubstr("rope_factors_long.weight has 5000 numbers, but a head has at most 2048 RoPE pairs"));
}

TEST_F(GgufSpec, InspectNamesTheFormats) {
  const Backend backend = make_reference_backend();
  const auto text = inspect("tests/data/gguf/llama-q4_k_m/model.gguf", backend);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("parameters (Q4_K, "));
}

}  // namespace
}  // namespace octavo
