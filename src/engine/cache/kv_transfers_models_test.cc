// Tests two engines with real models in this process. One engine computes prompts, and the other loads
// their blocks and decodes.
#include <gtest/gtest.h>

#include "base/testing/eventually.h"
#include "engine/load/load.h"
#include "engine/testing/kv_handover.h"

namespace octavo {
namespace {

// Tokens and logprobs have the same bits with and without blocks from another engine.
struct ModelCase {
  std::string model, device, kv_cache_dtype;
  bool shared_memory;
};

class KvTransfersOfModels : public testing::TestWithParam<ModelCase> {};

EngineOptions model_options(const ModelCase& c) {
  EngineOptions options;
  options.model.dir = "tests/data/models/" + c.model;
  options.device.type = c.device;
  options.device.threads = 2;
  options.cache.num_blocks = 40;
  options.model.max_model_len = 160;
  options.cache.dtype = c.kv_cache_dtype;
  return options;
}

TEST_P(KvTransfersOfModels, AnswersAreThoseOfOneEngineToTheBit) {
  EngineOptions plain = model_options(GetParam()), producing = plain, consuming = plain;
  producing.kv_transfer = transfer_options(true);
  consuming.kv_transfer = transfer_options(false, GetParam().shared_memory);
  const auto alone = load_engine(plain).value();
  const auto producer = load_engine(producing).value();
  const auto consumer = load_engine(consuming).value();
  constexpr int kRequests = 8;
  const std::vector<CollectedAnswer> wanted = answers_of(*alone, kRequests);

  const int vocab = alone->info().vocab_size;
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < kRequests; ++i) {
    Request request = request_of(i, vocab);
    request.kv_transfer = prefill(*producer, request);
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(consumer->submit(std::move(request), sinks.back()));
  }
  for (int i = 0; i < kRequests; ++i) {
    sinks[static_cast<std::size_t>(i)]->wait();
    const Collector& got = *sinks[static_cast<std::size_t>(i)];
    EXPECT_EQ((CollectedAnswer{got.tokens, got.logprobs}), wanted[static_cast<std::size_t>(i)]) << i;
  }
  EXPECT_EQ(failures(*consumer), 0);
  EXPECT_GT(hits(*consumer), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, KvTransfersOfModels,
                         testing::Values(ModelCase{"llama", "cpu", "auto", true},
                                         ModelCase{"llama", "cpu", "fp8", false},
                                         ModelCase{"llama", "reference", "auto", true},
                                         ModelCase{"qwen3", "cpu", "int8_per_token_head", true},
                                         ModelCase{"qwen3", "cpu", "int4_per_token_head", false},
                                         ModelCase{"qwen2", "cpu", "float16", false}),
                         [](const auto& test) {
                           return test.param.model + "_" + test.param.device + "_" +
                                  test.param.kv_cache_dtype +
                                  (test.param.shared_memory ? "_shared_memory" : "_tcp");
                         });

struct SizesCase {
  ModelCase model;
  int produced, consumed;  // tokens per block
};

class KvTransfersOfSizes : public testing::TestWithParam<SizesCase> {};

TEST_P(KvTransfersOfSizes, AnswersAreThoseOfOneEngineToTheBit) {
  EngineOptions plain = model_options(GetParam().model), producing = plain, consuming = plain;
  plain.cache.block_size = consuming.cache.block_size = GetParam().consumed;
  producing.cache.block_size = GetParam().produced;
  producing.kv_transfer = transfer_options(true);
  // A lease of a prompt without a full block expires. Every other lease must end earlier, when its blocks are
  // loaded.
  producing.kv_transfer.lease_seconds = 10;
  consuming.kv_transfer = transfer_options(false, GetParam().model.shared_memory);
  const auto alone = load_engine(plain).value();
  const auto producer = load_engine(producing).value();
  const auto consumer = load_engine(consuming).value();
  constexpr int kRequests = 14;
  const std::vector<CollectedAnswer> wanted = answers_of(*alone, kRequests);
  std::int64_t may_hit = 0;
  for (int i = 0; i < kRequests; ++i) {
    Request request = request_of(i, alone->info().vocab_size);
    const auto tokens = static_cast<int>(request.prompt.size()) - 1;
    if (!request.sampling.logprobs.prompt)
      may_hit +=
          tokens / GetParam().produced * GetParam().produced / GetParam().consumed * GetParam().consumed;
    EXPECT_EQ(answer_of(*producer, *consumer, std::move(request)), wanted[static_cast<std::size_t>(i)]) << i;
  }
  EXPECT_EQ(failures(*consumer), 0);
  EXPECT_GT(hits(*consumer), 0);
  EXPECT_LE(hits(*consumer), may_hit);
  EXPECT_TRUE(eventually([&] { return producer->own_stats().kv_transfer.held_blocks == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Models, KvTransfersOfSizes,
                         testing::Values(SizesCase{{"llama", "cpu", "auto", true}, 16, 32},
                                         SizesCase{{"llama", "cpu", "auto", false}, 32, 16},
                                         SizesCase{{"llama", "reference", "auto", false}, 16, 48},
                                         SizesCase{{"qwen3", "cpu", "int8_per_token_head", true}, 48, 32},
                                         SizesCase{{"qwen3", "cpu", "int4_per_token_head", true}, 32, 16},
                                         SizesCase{{"llama", "cpu", "fp8", true}, 16, 64}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}_{}_{}", test.param.model.model,
                                              test.param.model.device, test.param.model.kv_cache_dtype,
                                              test.param.produced, test.param.consumed);
                         });

EngineOptions roomy_options(const ModelCase& c) {
  EngineOptions options = model_options(c);
  options.cache.num_blocks.reset();
  options.cache.memory_bytes = 4 << 20;
  options.schedule.max_num_seqs = 8;
  options.cache.mamba_block_size = 64;  // so that a state is always saved at the end of a prompt
  return options;
}

class KvTransfersOfParts : public testing::TestWithParam<ModelCase> {};

TEST_P(KvTransfersOfParts, AnswersAreThoseOfOneEngineToTheBit) {
  EngineOptions plain = roomy_options(GetParam()), producing = plain, consuming = plain;
  producing.kv_transfer = transfer_options(true);
  consuming.kv_transfer = transfer_options(false, GetParam().shared_memory);
  const auto alone = load_engine(plain).value();
  const auto producer = load_engine(producing).value();
  const auto consumer = load_engine(consuming).value();
  constexpr int kRequests = 12;
  const std::vector<CollectedAnswer> wanted = answers_of(*alone, kRequests);
  const int vocab = alone->info().vocab_size;
  std::int64_t may_hit = 0;
  for (int i = 0; i < kRequests; ++i) {
    Request request = request_of(i, vocab);
    if (!request.sampling.logprobs.prompt) may_hit += (std::ssize(request.prompt) - 1) / 16 * 16;
    EXPECT_EQ(answer_of(*producer, *consumer, std::move(request)), wanted[static_cast<std::size_t>(i)]) << i;
  }
  EXPECT_EQ(failures(*consumer), 0);
  EXPECT_GT(hits(*consumer), may_hit / 2) << "prompts share beginnings";
  EXPECT_TRUE(eventually([&] { return producer->own_stats().kv_transfer.held_blocks == 0; }));
  EXPECT_TRUE(eventually([&] { return consumer->own_stats().kv_transfer.held_blocks == 0; }));
}

INSTANTIATE_TEST_SUITE_P(
    Models, KvTransfersOfParts,
    testing::Values(ModelCase{"mistral", "cpu", "auto", true}, ModelCase{"gemma3", "cpu", "auto", false},
                    ModelCase{"gemma3", "reference", "auto", false}, ModelCase{"gpt_oss", "cpu", "fp8", true},
                    ModelCase{"qwen3_5", "cpu", "auto", true}, ModelCase{"qwen3_next", "cpu", "auto", false},
                    ModelCase{"falcon_h1", "cpu", "auto", true}, ModelCase{"mamba2", "cpu", "auto", true},
                    ModelCase{"rwkv7", "cpu", "auto", false}),
    [](const auto& test) {
      return test.param.model + "_" + test.param.device + "_" + test.param.kv_cache_dtype +
             (test.param.shared_memory ? "_shared_memory" : "_tcp");
    });

TEST(KvTransfers, StatesGoFromOneBackendToAnother) {
  EngineOptions producing = roomy_options({"qwen3_5", "reference", "auto", true});
  EngineOptions consuming = roomy_options({"qwen3_5", "cpu", "auto", true});
  producing.model.dtype = consuming.model.dtype = "float32";
  producing.kv_transfer = transfer_options(true);
  consuming.kv_transfer = transfer_options(false);
  const auto producer = load_engine(producing).value();
  const auto consumer = load_engine(consuming).value();
  consuming.kv_transfer = {};
  const auto alone = load_engine(consuming).value();
  Request request = request_of(6, producer->info().vocab_size);
  request.sampling.temperature = 0;
  auto wanted = std::make_shared<Collector>(), got = std::make_shared<Collector>();
  ASSERT_TRUE(alone->submit(request, wanted));
  wanted->wait();
  request.kv_transfer = prefill(*producer, request);
  ASSERT_TRUE(consumer->submit(std::move(request), got));
  got->wait();
  EXPECT_EQ(got->tokens, wanted->tokens);
  EXPECT_GT(hits(*consumer), 0);
  EXPECT_EQ(failures(*consumer), 0);
}

TEST(KvTransfers, ModelsThatDifferExchangeNothing) {
  EngineOptions producing = model_options({"llama", "cpu", "auto", true});
  EngineOptions consuming = producing;
  consuming.model.quantization = "int8";
  producing.kv_transfer = transfer_options(true);
  consuming.kv_transfer = transfer_options(false);
  const auto producer = load_engine(producing).value();
  const auto consumer = load_engine(consuming).value();
  Request request = request_of(6, producer->info().vocab_size);
  request.kv_transfer = prefill(*producer, request);
  auto sink = std::make_shared<Collector>();
  ASSERT_TRUE(consumer->submit(std::move(request), sink));
  sink->wait();
  EXPECT_EQ(sink->error, "");
  EXPECT_TRUE(eventually([&] { return failures(*consumer, KvTransferFailure::mismatch) == 1; }));
}

}  // namespace
}  // namespace octavo
