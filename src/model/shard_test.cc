// Two and four ranks, threads here, against the goldens of one.
#include "model/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "kernels/backends.h"
#include "model/golden.h"

namespace octavo {
namespace {

using golden::Golden;

// Logits of every position on rank 0, and the bytes of weights on each rank; an error that the ranks agree on.
struct Ranked {
  std::vector<float> logits;
  std::vector<std::size_t> weight_bytes;
  std::optional<Error> error;
};

Ranked run_on(int size, const Golden& golden, ModelDType dtype, const std::vector<int>& chunks) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(size)).value();
  std::vector<Ranked> ranks(static_cast<std::size_t>(size));
  const auto run_rank = [&](int rank) {
    Ranked& out = ranks[static_cast<std::size_t>(rank)];
    Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
    const auto model = Model::load(
        golden.directory, backend,
        {.dtype = dtype, .max_model_len = golden.max_model_len, .threads = 1, .shard = {rank, size}});
    if (!model) {
      out.error = model.error();
      return;
    }
    SharedMemoryGroup group(memory.bytes(), {.rank = rank, .size = size, .check = {}, .spin = false});
    out.weight_bytes = {(*model)->weight_bytes};
    out.logits = golden::run(**model, backend, golden.ids, chunks, {.dtype = (*model)->activation}, {},
                             size > 1 ? &group : nullptr)
                     .value();
    EXPECT_TRUE(group.status().has_value());
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) threads.emplace_back(run_rank, rank);
  }
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ranks[rank].error.has_value(), ranks[0].error.has_value());
    if (!ranks[rank].error) ranks[0].weight_bytes.push_back(ranks[rank].weight_bytes[0]);
  }
  return std::move(ranks[0]);
}

class ShardGolden : public testing::TestWithParam<std::string> {};

// Every family: the numbers of transformers, the same bits however the prompt is cut, or a refusal that says
// of what.
TEST_P(ShardGolden, RanksTogetherAreTheModel) {
  const Golden golden = golden::read(GetParam());
  for (const int size : {2, 4}) {
    const Ranked whole = run_on(size, golden, ModelDType::float32, {static_cast<int>(golden.ids.size())});
    if (whole.error) {
      EXPECT_THAT(golden.name, testing::Not(testing::AnyOf("llama", "qwen3", "gemma3", "phi3", "apertus", "gptj",
                                                               "hunyuan_v1_dense", "ministral3", "mpt")));
      EXPECT_EQ(whole.error->field, "tensor_parallel_size") << whole.error->message;
      fmt::print("{:<22} {} ranks: {}\n", golden.name, size, whole.error->message);
      continue;
    }
    const float difference = golden::max_difference(whole.logits, golden.logits);
    fmt::print("{:<22} {} ranks: max |logit difference| {:.1e}\n", golden.name, size, difference);
    EXPECT_LE(difference, 1e-4F);
    EXPECT_EQ(whole.logits, run_on(size, golden, ModelDType::float32, {13, 1, 2, 16}).logits);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, ShardGolden, testing::ValuesIn(golden::names()), test_name);

TEST(Shard, EachRankLoadsItsPartAlone) {
  Golden demo{.name = "demo", .directory = "models/demo", .ids = {1, 2, 3}, .logits = {}, .bf16_kl = {}, .max_model_len = {}};
  demo.max_model_len = 32;
  const std::size_t one = run_on(1, demo, ModelDType::automatic, {3}).weight_bytes[0];
  const Ranked two = run_on(2, demo, ModelDType::automatic, {3});
  ASSERT_EQ(two.weight_bytes.size(), 2u);
  for (const std::size_t bytes : two.weight_bytes) EXPECT_LT(bytes, one * 51 / 100);
}

TEST(Shard, WhatCannotBeSplitIsRefusedByName) {
  ModelSpec spec;
  spec.vocab = 100;
  spec.shard = {0, 2};
  LayerSpec layer;
  layer.mixer = Attention{.q_heads = 6, .kv_heads = 3, .head_dim = 16};
  spec.layers = {layer};
  EXPECT_EQ(check_shard(spec).error().message, "is 2, which does not divide 3 key heads");
  spec.layers[0].attention().kv_heads = 1;
  spec.layers[0].feed_forward = Mlp{.hidden = 33};
  EXPECT_EQ(check_shard(spec).error().message, "is 2, which does not divide 33 hidden units");
  spec.layers[0].feed_forward = Experts{};
  EXPECT_EQ(check_shard(spec).error().message, "must be 1 for models with experts");
  for (const Mixer& recurrent : {Mixer(DeltaNet{}), Mixer(ShortConv{}), Mixer(Mamba2{}), Mixer(Mamba{})}) {
    spec.layers[0].mixer = recurrent;
    EXPECT_EQ(check_shard(spec).error().message, "must be 1 for models with recurrent layers");
  }
  spec.layers[0].mixer = std::monostate();
  spec.layers[0].second_mixer = Mamba2{};
  EXPECT_EQ(check_shard(spec).error().message, "must be 1 for models with recurrent layers");
  spec.shard.size = 1;
  EXPECT_TRUE(check_shard(spec));
}

TEST(Shard, QuantisationWhileLoadingIsRefused) {
  Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
  const auto model =
      Model::load("models/demo", backend, {.quantization = Encoding::int8, .threads = 1, .shard = {0, 2}});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().field, "quantization");
}

}  // namespace
}  // namespace octavo
