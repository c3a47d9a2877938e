// Compares two to four ranks (threads in this test) with the golden results of one rank.
#include "model/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "kernels/backends.h"
#include "model/blocks/expert_spread.h"
#include "model/staged_group.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

using golden::Golden;

// Logits of every position on rank 0, and the size of the weights on each rank. If a rank fails, all ranks
// must return the same error.
struct Ranked {
  std::vector<float> logits;
  std::vector<std::size_t> weight_bytes;
  std::optional<Error> error;
};

struct Split {
  RankLayout layout;
  bool whole_experts = false;
  std::uint16_t redundant_experts = 0;
  Encoding quantization = Encoding::plain;  // quantisation while loading
  bool moves = false;                       // move the experts of each layer before each chunk
  std::string adapter = {};                 // folder of an adapter that all tokens use; "": none
  bool on_gpus = false;
};
constexpr int kAdapterRank = 8;

// Returns a random placement in which each expert has at least one slot.
ExpertPlacement some_placement(std::uint64_t seed, std::size_t experts, std::size_t slots) {
  ExpertPlacement placement;
  for (std::size_t i = 0; i < slots; ++i)
    placement.push_back(static_cast<std::int32_t>(i < experts ? i : random_bits(seed, i) % experts));
  for (std::size_t i = slots; i > 1; --i)
    std::swap(placement[i - 1], placement[random_bits(seed + 1, i) % i]);
  return placement;
}

void move_experts(const Model& model, ProcessGroup& group, std::uint64_t seed) {
  for (const Layer& layer : model.network.layers)
    for (const Block* block : layer.blocks())
      if (ExpertSpread* spread = block->experts_over_ranks()) {
        std::vector<std::byte> staging(
            static_cast<std::size_t>(spread->slot_bytes() * std::ssize(spread->own())));
        spread->move(some_placement(++seed, spread->loads().size(), spread->placement().size()), group,
                     staging);
      }
}

Ranked run_on(const Split& split, const Golden& golden, ModelDType dtype, const std::vector<int>& chunks) {
  const RankLayout& layout = split.layout;
  const auto groups = layout.groups();
  std::vector<SharedMemory> memory;
  for (const auto& members : groups)
    memory.push_back(SharedMemory::create(SharedMemoryGroup::memory_bytes(static_cast<int>(members.size()))).value());
  std::vector<Ranked> ranks(static_cast<std::size_t>(layout.size()));
  const auto run_rank = [&](int rank) {
    Ranked& out = ranks[static_cast<std::size_t>(rank)];
    Backend backend =
        (split.on_gpus ? make_cuda_backend() : make_cpu_backend({.threads = 1, .isa = {}})).value();
    const auto model = Model::load(
        golden.directory, backend,
        {.dtype = dtype,
         .quantization = split.quantization,
         .max_model_len = golden.max_model_len,
         .threads = 1,
         .shard = {layout.part(rank), layout.tensor, split.whole_experts, split.redundant_experts},
         .pipeline = {.stage = layout.stage(rank), .stages = layout.pipeline}});
    if (!model) {
      out.error = model.error();
      return;
    }
    Adapter adapter;
    if (!split.adapter.empty()) {
      const AdapterReader reader((*model)->spec, (*model)->activation, kAdapterRank, layout.tensor == 1);
      const auto file = reader.read(split.adapter);
      if (!file) {
        out.error = file.error();
        return;
      }
      adapter.resize(reader.linears());
      for (const AdapterFile::Change& change : file->changes)
        adapter[change.linear] = reader.prepare(change, backend).value();
    }
    const bool adapted = !adapter.empty();
    const RankGroups host = make_groups(layout, rank, [&](std::size_t i, const std::vector<int>& members) {
      const auto index = static_cast<int>(std::ranges::find(members, rank) - members.begin());
      return std::make_unique<SharedMemoryGroup>(
          memory[i].bytes(),
          SharedMemoryGroupOptions{
              .rank = index, .size = static_cast<int>(members.size()), .check = {}, .spin = false});
    });
    const RankGroups staged = split.on_gpus ? staged_groups(backend, host) : RankGroups();
    const RankGroups& own = split.on_gpus ? staged : host;
    out.weight_bytes = {(*model)->weight_bytes};
    std::uint64_t seed = 0;
    const auto before_chunk = [&] {
      if (split.moves) move_experts(**model, *own.tensor, seed += 100);
    };
    out.logits = golden::run(**model, backend, golden.ids, chunks, {.dtype = (*model)->activation},
                             {adapted ? &adapter : nullptr, adapted ? kAdapterRank : 0}, own, before_chunk)
                     .value();
    EXPECT_TRUE(own.status().has_value());
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < layout.size(); ++rank) threads.emplace_back(run_rank, rank);
  }
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ranks[rank].error.has_value(), ranks[0].error.has_value());
    if (!ranks[rank].error) ranks[0].weight_bytes.push_back(ranks[rank].weight_bytes[0]);
  }
  return std::move(ranks[0]);
}

Ranked run_on(int size, const Golden& golden, ModelDType dtype, const std::vector<int>& chunks) {
  return run_on({.layout = {.tensor = size}}, golden, dtype, chunks);
}

class ShardGolden : public testing::TestWithParam<std::string> {};

// Every family must either equal transformers, with the same bits for any chunks of the prompt, or return an
// error that names the unsupported part.
TEST_P(ShardGolden, RanksTogetherAreTheModel) {
  const Golden golden = golden::read(GetParam());
  for (const int size : {2, 3, 4}) {
    const Ranked whole = run_on(size, golden, ModelDType::float32, {static_cast<int>(golden.ids.size())});
    if (whole.error) {
      if (size != 3) {
        EXPECT_THAT(golden.name, testing::Not(testing::AnyOf("llama", "qwen3", "gemma3", "phi3", "apertus", "gptj", "gpt2", "gpt_oss-even",
                                                             "hunyuan_v1_dense", "ministral3", "mpt", "deepseek_v2",
                                                             "deepseek_v3")));
      }
      if (size == 2) {
        EXPECT_THAT(golden.name, testing::Not(testing::AnyOf("qwen3_next", "mamba2", "olmo2")));
      }
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

// Stages pass the residual unchanged, so the logits are bit-identical to a single stage's logits.
TEST_P(ShardGolden, StagesTogetherAreTheModel) {
  const Golden golden = golden::read(GetParam());
  const std::vector<int> whole{static_cast<int>(golden.ids.size())};
  for (const int tensor : {1, 2, 4}) {
    const Ranked one = run_on(tensor, golden, ModelDType::float32, whole);
    const Ranked two = run_on({.layout = {tensor, 2}}, golden, ModelDType::float32, {13, 1, 2, 16});
    if (two.error) {
      const bool split = one.error.has_value();
      EXPECT_EQ(two.error->field, split ? "tensor_parallel_size" : "pipeline_parallel_size") << two.error->message;
      fmt::print("{:<22} 2 stages of {}: {}\n", golden.name, tensor, two.error->message);
      continue;
    }
    EXPECT_EQ(one.logits, two.logits);
    for (const std::size_t bytes : two.weight_bytes) EXPECT_LT(bytes, one.weight_bytes[0]);
  }
}

TEST_P(ShardGolden, ExpertsOverRanksAreTheModel) {
  const Golden golden = golden::read(GetParam());
  const Split split{.layout = {.tensor = 2}, .whole_experts = true};
  const Ranked whole = run_on(split, golden, ModelDType::float32, {static_cast<int>(golden.ids.size())});
  if (whole.error) {
    fmt::print("{:<22} experts over 2 ranks: {}\n", golden.name, whole.error->message);
    return;
  }
  EXPECT_LE(golden::max_difference(whole.logits, golden.logits), 1e-4F);
  EXPECT_EQ(whole.logits, run_on(split, golden, ModelDType::float32, {13, 1, 2, 16}).logits);
}

// The results must depend neither on the rank that computes an expert, nor on the number of its replicas.
TEST_P(ShardGolden, ExpertsMayMoveBetweenSteps) {
  const Golden golden = golden::read(GetParam());
  const Split still{.layout = {.tensor = 2}, .whole_experts = true};
  for (const ModelDType dtype : {ModelDType::float32, ModelDType::bfloat16}) {
    const Ranked one = run_on(still, golden, dtype, {8, 3, 1});
    if (one.error) {
      EXPECT_THAT(golden.name, testing::Not(testing::AnyOf("deepseek_v2", "deepseek_v3", "qwen3_moe")));
      return;
    }
    Split moving = still;
    moving.moves = true;
    EXPECT_EQ(one.logits, run_on(moving, golden, dtype, {8, 3, 1}).logits);
    moving.redundant_experts = 3;
    EXPECT_EQ(one.logits, run_on(moving, golden, dtype, {8, 3, 1}).logits);
  }
}

// Every layout on GPUs must equal transformers, with the same bits for any chunks and any number of stages.
class ShardOnGpus : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto gpu = make_cuda_backend(); !gpu) GTEST_SKIP() << gpu.error().message;
  }
};

TEST_P(ShardOnGpus, EveryLayoutIsTheModel) {
  const Golden golden = golden::read(GetParam());
  const std::vector<int> whole{static_cast<int>(golden.ids.size())};
  const auto run = [&](const RankLayout& layout, bool whole_experts, const std::vector<int>& chunks) {
    return run_on({.layout = layout, .whole_experts = whole_experts, .on_gpus = true}, golden,
                  ModelDType::float32, chunks);
  };
  for (const auto& [tensor, whole_experts] : {std::pair(1, false), std::pair(2, false), std::pair(2, true)}) {
    const Ranked one = run({tensor, 1}, whole_experts, whole);
    ASSERT_FALSE(one.error) << one.error->message;
    EXPECT_LE(golden::max_difference(one.logits, golden.logits), 1e-4F);
    const std::vector<int> chunks{13, 1, 2, 16};
    const Ranked two = run({tensor, 2}, whole_experts, chunks);
    if (two.error) {
      EXPECT_EQ(two.error->message, "is 2, but the model has only 1 layers");
      EXPECT_EQ(one.logits, run({tensor, 1}, whole_experts, chunks).logits);
    } else {
      EXPECT_EQ(one.logits, two.logits);
    }
  }
}

// Quantised matrices are split between groups if possible. Otherwise they become plain.
class ShardQuantised : public testing::TestWithParam<std::string> {};

TEST_P(ShardQuantised, EveryLayoutIsTheModel) {
  const Golden golden = golden::read(GetParam(), golden::kQuantized);
  const std::vector<int> whole{static_cast<int>(golden.ids.size())};
  const auto vocab = std::ssize(golden.logits) / std::ssize(golden.ids);
  for (const int tensor : {1, 2, 4}) {
    const Ranked one = run_on(tensor, golden, ModelDType::float32, whole);
    if (one.error && tensor == 4) {
      EXPECT_EQ(one.error->field, "tensor_parallel_size") << one.error->message;
      fmt::print("{:<26} 4 ranks: {}\n", golden.name, one.error->message);
      continue;
    }
    ASSERT_FALSE(one.error) << one.error->message;
    const double kl = golden::mean_kl(golden.logits, one.logits, vocab);
    fmt::print("{:<26} {} ranks: KL {:.1e}\n", golden.name, tensor, kl);
    EXPECT_LE(kl, 5e-3);
    const Ranked two = run_on({.layout = {tensor, 2}}, golden, ModelDType::float32, {13, 1, 2, 16});
    if (two.error)
      EXPECT_EQ(two.error->message, "is 2, but the model has only 1 layers");
    else
      EXPECT_EQ(one.logits, two.logits);
  }
  const Split spread{.layout = {.tensor = 2}, .whole_experts = true};
  const Ranked still = run_on(spread, golden, ModelDType::automatic, {7, 2});
  ASSERT_FALSE(still.error) << still.error->message;
  EXPECT_EQ(still.logits,
            run_on({.layout = {.tensor = 2}, .whole_experts = true, .redundant_experts = 0, .moves = true},
                   golden, ModelDType::automatic, {7, 2})
                .logits);
}

// Each rank uses the part of an adapter that belongs to its matrices.
class ShardAdapter : public testing::TestWithParam<std::string> {};

TEST_P(ShardAdapter, EveryLayoutIsTheModelWithIt) {
  Golden golden = golden::read(GetParam(), "tests/data/adapters");
  const auto [base, adapter] = golden::adapter_case(golden.name);
  golden.directory = base;
  const std::vector<int> whole{static_cast<int>(golden.ids.size())};
  const auto run = [&](const RankLayout& layout, const std::vector<int>& chunks) {
    return run_on({.layout = layout, .adapter = adapter}, golden, ModelDType::float32, chunks);
  };
  const Ranked one = run({}, whole), stages = run({1, 2}, {13, 1, 2, 16});
  ASSERT_FALSE(one.error || stages.error);
  EXPECT_LE(golden::max_difference(one.logits, golden.logits), 1e-4F);
  EXPECT_EQ(one.logits, stages.logits);
  const Ranked two = run({2, 1}, whole), both = run({2, 2}, {13, 1, 2, 16});
  ASSERT_EQ(two.error.has_value(), both.error.has_value());
  if (two.error) {
    fmt::print("{:<22} 2 ranks: {}\n", golden.name, two.error->message);
    return;
  }
  EXPECT_LE(golden::max_difference(two.logits, golden.logits), 1e-4F);
  EXPECT_EQ(two.logits, both.logits);
}

TEST(Shard, AdaptersWorkOnGpus) {
  if (const auto gpu = make_cuda_backend(); !gpu) GTEST_SKIP() << gpu.error().message;
  Golden golden = golden::read("qwen3", "tests/data/adapters");
  const auto [base, adapter] = golden::adapter_case(golden.name);
  golden.directory = base;
  for (const int stages : {1, 2}) {
    const Ranked found = run_on({.layout = {2, stages}, .adapter = adapter, .on_gpus = true}, golden,
                                ModelDType::float32, {13, 1, 2, 16});
    ASSERT_FALSE(found.error) << found.error->message;
    EXPECT_LE(golden::max_difference(found.logits, golden.logits), 1e-4F);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, ShardGolden, testing::ValuesIn(golden::names()), test_name);
// These have experts, biases of experts, shared experts, latent attention, recurrent states and norms over
// the heads of all ranks.
INSTANTIATE_TEST_SUITE_P(Families, ShardOnGpus,
                         testing::Values("llama", "qwen3_moe", "gpt_oss-even", "deepseek_v3", "qwen3_next",
                                         "olmo2"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Formats, ShardQuantised, testing::ValuesIn(golden::names(golden::kQuantized)), test_name);
INSTANTIATE_TEST_SUITE_P(Families, ShardAdapter, testing::ValuesIn(golden::names("tests/data/adapters")), test_name);

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
  EXPECT_EQ(check_shard(spec).error().message, "is 2, but must divide 3 key heads");
  spec.layers[0].attention().kv_heads = 1;
  spec.layers[0].feed_forward = Mlp{.hidden = 33};
  EXPECT_EQ(check_shard(spec).error().message, "is 2, but must divide 33 hidden units");
  spec.layers[0].feed_forward = Experts{.count = 3, .router = {}, .expert = Mlp{.hidden = 33}};
  EXPECT_EQ(check_shard(spec).error().message, "is 2, but must divide 33 hidden units of an expert");
  std::get<Experts>(spec.layers[0].feed_forward).expert.hidden = 3 * 32;
  spec.shard.size = 5;
  spec.layers[0].attention().q_heads = 10;
  EXPECT_EQ(check_shard(spec).error().message, "is 5, but must divide 96 hidden units of an expert");
  spec.shard.size = 2;
  EXPECT_TRUE(check_shard(spec));
  spec.shard.whole_experts = true;
  EXPECT_TRUE(check_shard(spec));
  std::get<Experts>(spec.layers[0].feed_forward).count = 1;
  EXPECT_EQ(check_shard(spec).error().message, "is 2, but the model has 1 experts");
  spec.shard.engines = 3;
  EXPECT_EQ(check_shard(spec).error().message,
            "times tensor_parallel_size is 6, but the model has 1 experts");
  EXPECT_EQ(check_shard(spec).error().field, "data_parallel_size");
  spec.shard.engines = 1;
  const auto error_of = [&](const Mixer& mixer) {
    spec.layers[0].mixer = mixer;
    return check_shard(spec).error().message;
  };
  EXPECT_EQ(error_of(LatentAttention{.heads = 3}), "is 2, but must divide 3 heads");
  EXPECT_EQ(error_of(DeltaNet{.key_heads = 5}), "is 2, but must divide 5 key heads");
  EXPECT_EQ(error_of(Mamba{}), "must be 1 for models with Mamba layers");
  Attention two_heads{.q_heads = 2, .kv_heads = 2, .head_dim = 16};
  EXPECT_EQ(error_of(LoopAttention{.attention = two_heads}),
            "must be 1 for models with layers that run several times");
  EXPECT_EQ(error_of(SparseAttention{.attention = two_heads, .index_dim = 16}),
            "must be 1 for models with attention to blocks of tokens");
  two_heads.scores.fixed_keys = 3;
  EXPECT_EQ(error_of(two_heads), "must be 1 for models with fixed keys");
  two_heads.scores.fixed_keys = 0;
  two_heads.norms.out = {.kind = NormKind::rms, .stored = false};
  EXPECT_EQ(error_of(two_heads), "must be 1 for models with norms over the outputs of all heads");
  spec.dim = 7;
  EXPECT_EQ(error_of(ShortConv{}), "is 2, but must divide 7 channels");
  spec.layers[0].mixer = std::monostate();
  spec.layers[0].second_mixer = Mamba2{.groups = 1};
  EXPECT_EQ(check_shard(spec).error().message, "is 2, but must divide 1 groups of Mamba2 heads");
  spec.layers[0].second_mixer = std::monostate();
  spec.layers[0].feed_forward = Mlp{.hidden = 32, .hidden_norm = {.kind = NormKind::rms, .stored = false}};
  EXPECT_EQ(check_shard(spec).error().message,
            "must be 1 for models with norms over the hidden units of MLPs");
  spec.shard.size = 1;
  EXPECT_TRUE(check_shard(spec));
}

// A part may have any number of rows. Experts' hidden units are divided between groups of MXFP4 if each rank
// gets at least one group.
TEST(Shard, PartsAreOneBehindTheOther) {
  const auto parts = [](int size, std::int64_t n) {
    std::vector<std::int64_t> found;
    std::int64_t end = 0;
    for (int rank = 0; rank < size; ++rank) {
      const Shard shard{rank, size};
      EXPECT_EQ(shard.first(n), end);
      found.push_back(shard.count(n));
      end += found.back();
    }
    EXPECT_EQ(end, n);
    return found;
  };
  EXPECT_EQ(parts(2, 97), (std::vector<std::int64_t>{48, 49}));
  // 90 groups of hidden units in gpt-oss
  EXPECT_EQ(parts(4, 90), (std::vector<std::int64_t>{22, 23, 22, 23}));
  EXPECT_EQ(parts(4, 128), (std::vector<std::int64_t>{32, 32, 32, 32}));
  EXPECT_EQ(Shard(0, 4).together(2880), 32);
  EXPECT_EQ(Shard(0, 4).together(96), 1);
  EXPECT_EQ(Shard(0, 2).together(90), 1);
}

TEST(Stages, AreEvenInWeightsAndHaveALayerEach) {
  ModelSpec spec;
  spec.vocab = 100;
  spec.dim = 10;
  LayerSpec layer;
  layer.feed_forward = Mlp{.hidden = 10};
  // each layer has 300 parameters, the embedding and the output matrix 1000 each
  spec.layers.assign(8, layer);
  const auto ends = [&](int stages) {
    std::vector<int> found;
    const std::vector<Stage> all = divide_layers(spec, stages).value();
    for (const Stage& stage : all) found.push_back(stage.end_layer);
    return found;
  };
  EXPECT_EQ(ends(1), std::vector({8}));
  EXPECT_EQ(ends(2), std::vector({4, 8}));
  EXPECT_EQ(ends(4), std::vector({1, 4, 7, 8}));
  EXPECT_EQ(ends(8), std::vector({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(divide_layers(spec, 9).error().message, "is 9, but the model has only 8 layers");
  EXPECT_EQ(divide_layers(spec, 9).error().field, "pipeline_parallel_size");
}

// A rank's columns get their own scales. So the error, relative to the plain model, must not be larger than
// with one rank.
TEST(Shard, QuantisedWhileLoadingRanksAreTheModel) {
  Golden demo{.name = "demo", .directory = "models/demo", .ids = {}, .logits = {}, .bf16_kl = {}, .max_model_len = {}};
  for (std::int32_t i = 0; i < 24; ++i) demo.ids.push_back(7 * i % 90);
  demo.max_model_len = 64;
  const Ranked plain = run_on(1, demo, ModelDType::float32, {24});
  const auto vocab = std::ssize(plain.logits) / std::ssize(demo.ids);
  for (const Encoding encoding : {Encoding::int8, Encoding::int4}) {
    const auto divergence = [&](int ranks) {
      const Split split{.layout = {.tensor = ranks}, .quantization = encoding};
      const Ranked run = run_on(split, demo, ModelDType::float32, {24});
      if (run.error) {
        ADD_FAILURE() << run.error->message;
        return 0.0;
      }
      EXPECT_EQ(run.logits, run_on(split, demo, ModelDType::float32, {5, 12, 7}).logits);
      return golden::mean_kl(plain.logits, run.logits, vocab);
    };
    const double one = divergence(1), two = divergence(2);
    fmt::print("{}: KL of one rank {:.1e}, of two {:.1e}\n", name(encoding), one, two);
    EXPECT_GT(two, 0);
    EXPECT_LT(two, 2 * one);
  }
}

}  // namespace
}  // namespace octavo
