// Compares the executor on CUDA with the executor on the CPU: prompts, decoding, and sampling with all
// inputs. Builds without CUDA use an emulation whose device memory the host cannot read.
#include "engine/execute/local_executor.h"

#include <gtest/gtest.h>

#include "kernels/backends.h"
#ifdef OCTAVO_CUDA_EMULATED
#include "kernels/cuda/emulator/memory.h"
#endif

namespace octavo {
namespace {

constexpr int kBlockSize = 16, kPrompt = 21, kAnswer = 12;

SamplingParams params() {
  SamplingParams p;
  p.temperature = 0.8;
  p.top_p = 0.9;
  p.top_k = 20;
  p.penalties.repetition = 1.1;
  p.penalties.presence = 0.3;
  p.logprobs.output = 3;
  return p;
}

// Returns tokens [begin, end) of one sequence as a batch. The sequence has the blocks 1, 2, ..
Batch batch_of(const std::vector<TokenId>& ids, int begin, int groups) {
  const int end = static_cast<int>(ids.size());
  Batch batch;
  batch.query_starts = {0, end - begin};
  batch.lengths = {end};
  batch.sequences.resize(1);
  batch.state_slots = {0};
  for (int g = 0; g < groups; ++g) {
    Batch::Group group;
    group.table_stride = (end + kBlockSize - 1) / kBlockSize;
    for (int b = 0; b < group.table_stride; ++b) group.tables.push_back(1 + b * groups + g);
    for (int t = begin; t < end; ++t)
      group.slots.push_back(group.tables[static_cast<std::size_t>(t / kBlockSize)] * kBlockSize +
                            t % kBlockSize);
    batch.groups.push_back(group);
  }
  for (int t = begin; t < end; ++t) {
    batch.ids.push_back(ids[static_cast<std::size_t>(t)]);
    batch.positions.push_back(t);
  }
  return batch;
}

// Uses f32, so that the two executors differ only in the order of additions.
std::vector<SampledToken> generate(Backend backend, const std::string& name) {
  auto model =
      Model::load("tests/data/models/" + name, backend, {.dtype = ModelDType::float32, .threads = 2}).value();
  const CacheLayout layout =
      cache_layout(model->spec, {.block_size = kBlockSize, .dtype = model->activation});
  const int vocab = model->spec.vocab, groups = static_cast<int>(layout.groups.size());
  auto executor = LocalExecutor::create(std::make_shared<Backend>(std::move(backend)), std::move(model),
                                        layout, {.max_tokens = 64, .max_sequences = 4})
                      .value();
  if (!executor->device().shares_host_memory()) {
    EXPECT_TRUE(executor->rehearse());
  }
  EXPECT_TRUE(executor->allocate_cache(64, 1));
  std::vector<TokenId> ids;
  for (int i = 0; i < kPrompt; ++i) ids.push_back((7 * i + 3) % vocab);
  const SamplingParams wanted = params();
  SequenceSampling sampling(wanted, ids, {}, 42, vocab);
  std::vector<SampledToken> answer;
  for (int begin = 0; std::ssize(answer) < kAnswer;) {
    EXPECT_TRUE(executor->forward(batch_of(ids, begin, groups)));
    const std::int32_t last = static_cast<std::int32_t>(ids.size()) - begin - 1;
    const SampleRow row{.sequence = &sampling, .output = std::span(ids).subspan(kPrompt)};
    EXPECT_TRUE(executor->sample({&last, 1}, {&row, 1}));
    answer.push_back(executor->collect().value()[0]);
    begin = static_cast<int>(ids.size());
    ids.push_back(answer.back().id);
    sampling.append(answer.back().id);
  }
  return answer;
}

#ifdef OCTAVO_CUDA_EMULATED
// The host waits only for the ids of the previous step. So the device has work after every call, and after
// collect() the next forward pass is still running.
TEST(ExecutorOnADevice, WaitsForTheSampledIdsAndNothingElse) {
  namespace device = cuda::emulated;
  Backend backend = make_cuda_backend().value();
  auto model = Model::load("tests/data/models/llama", backend, {.threads = 2}).value();
  const CacheLayout layout =
      cache_layout(model->spec, {.block_size = kBlockSize, .dtype = model->activation});
  const int vocab = model->spec.vocab;
  auto executor = LocalExecutor::create(std::make_shared<Backend>(std::move(backend)), std::move(model),
                                        layout, {.max_tokens = 64, .max_sequences = 4})
                      .value();
  ASSERT_TRUE(executor->allocate_cache(64, 1));
  ASSERT_TRUE(executor->asynchronous());
  std::vector<TokenId> ids;
  for (int i = 0; i < kPrompt; ++i) ids.push_back((7 * i + 3) % vocab);
  const SamplingParams wanted = params();
  SequenceSampling sampling(wanted, ids, {}, 42, vocab);
  const auto sample = [&](std::int32_t token) {
    const SampleRow row{.sequence = &sampling, .output = std::span(ids).subspan(kPrompt)};
    EXPECT_TRUE(executor->sample({&token, 1}, {&row, 1}));
  };
  EXPECT_TRUE(executor->forward(batch_of(ids, 0, 1)));
  sample(kPrompt - 1);
  for (int step = 1; step < 10; ++step) {  // direct runs first, then a captured graph, then replays
    ids.push_back(0);
    Batch batch = batch_of(ids, static_cast<int>(ids.size()) - 1, 1);
    batch.pending = {{0, 0}};
    const std::uint64_t done = device::work_done();
    EXPECT_TRUE(executor->forward(batch));
    EXPECT_EQ(device::work_done(), done) << "forward() waited in step " << step;
    const auto sampled = executor->collect().value();
    EXPECT_GT(device::work_done(), done);
    const std::uint64_t collected = device::work_done();
    EXPECT_GT(device::work_waiting(), 20u) << "the forward pass of step " << step << " was waited for";
    ids.back() = sampled[0].id;
    sampling.append(sampled[0].id);
    sample(0);
    EXPECT_EQ(device::work_done(), collected) << "sample() waited in step " << step;
  }
}

// A sleeping engine gives the memory of its cache back to the device. Captured graphs contain the addresses
// of the cache, so steps after the sleep must not replay them.
TEST(ExecutorOnADevice, AReleasedCacheIsFreeMemory) {
  Backend backend = make_cuda_backend().value();
  auto model = Model::load("tests/data/models/llama", backend, {.threads = 2}).value();
  const CacheLayout layout =
      cache_layout(model->spec, {.block_size = kBlockSize, .dtype = model->activation});
  const int vocab = model->spec.vocab;
  constexpr std::int64_t kBlocks = 4096;
  const std::int64_t cache_bytes = kBlocks * layout.block_bytes(backend.ops);
  auto executor = LocalExecutor::create(std::make_shared<Backend>(std::move(backend)), std::move(model),
                                        layout, {.max_tokens = 64, .max_sequences = 4})
                      .value();
  ASSERT_TRUE(executor->allocate_cache(kBlocks, 1));
  const SamplingParams wanted = params();
  const SequenceSampling sampling(wanted, {}, {}, 42, vocab);
  const auto decode = [&] {
    std::vector<std::int32_t> ids;
    for (int step = 0; step < 3; ++step) {  // runs directly, captures a graph, replays it
      EXPECT_TRUE(executor->forward(new_texts(std::vector{1, 1}, 1, kBlockSize, vocab)));
      const std::vector<SampleRow> rows(2, {.sequence = &sampling, .output = {}});
      const std::int32_t last[] = {0, 1};
      EXPECT_TRUE(executor->sample(last, rows));
      const auto sampled = executor->collect().value();
      for (const SampledToken& token : sampled) ids.push_back(token.id);
    }
    return ids;
  };
  const std::vector<std::int32_t> before = decode();
  const std::size_t awake = executor->device().available_bytes();
  ASSERT_TRUE(executor->release_cache());
  EXPECT_GE(executor->device().available_bytes(), awake + static_cast<std::size_t>(cache_bytes));
  ASSERT_TRUE(executor->restore_cache());
  EXPECT_EQ(decode(), before);
}

// Weights in host memory take no memory of the device.
TEST(ExecutorOnADevice, WeightsInHostMemoryAreNotOnTheDevice) {
  const auto used = [](const HostWeights& host) {
    Backend backend = make_cuda_backend().value();
    const std::size_t before = backend.device->available_bytes();
    const auto model =
        Model::load("tests/data/models/qwen3_moe", backend, {.threads = 2, .host_weights = host}).value();
    return std::pair(before - backend.device->available_bytes(), model->host_weight_bytes);
  };
  const auto [all, none] = used({});
  EXPECT_EQ(none, 0u);
  const auto [some, one_layer] = used({.expert_layers = 1});
  const auto [few, every_layer] = used({.expert_layers = 100});
  EXPECT_GT(one_layer, 0u);
  EXPECT_EQ(every_layer, 2 * one_layer) << "layer 1 has no experts";
  EXPECT_LT(some, all);
  EXPECT_LT(few, some);
  const auto [least, everything] = used({.bytes = 1 << 30});
  EXPECT_GT(everything, every_layer);
  EXPECT_LT(least, few);
  EXPECT_EQ(used({.expert_layers = -1}).second, 0u) << "the device has enough memory for everything";
}

// An encoder stays on the device: the options concern the language model.
TEST(ExecutorOnADevice, WeightsOfAnEncoderAreNotInHostMemory) {
  Backend backend = make_cuda_backend().value();
  const auto model = Model::load("tests/data/vision/qwen3_vl", backend,
                                 {.threads = 2, .host_weights = {.bytes = std::int64_t{1} << 30}})
                         .value();
  ASSERT_TRUE(model->tower);
  EXPECT_GT(model->host_weight_bytes, 0u);
  EXPECT_EQ(model->tower->host_weight_bytes, 0u);
}

// When the cache size is chosen, all late allocations have happened, except CUDA graphs, whose size is
// known.
TEST(ExecutorOnADevice, StepsTakeWhatTheRehearsalSays) {
  Backend backend = make_cuda_backend().value();
  auto model = Model::load("tests/data/models/llama", backend, {.threads = 2}).value();
  const CacheLayout layout =
      cache_layout(model->spec, {.block_size = kBlockSize, .dtype = model->activation});
  const int vocab = model->spec.vocab;
  auto executor = LocalExecutor::create(std::make_shared<Backend>(std::move(backend)), std::move(model),
                                        layout, {.max_tokens = 64, .max_sequences = 4})
                      .value();
  const auto available = [&] { return static_cast<std::int64_t>(executor->device().available_bytes()); };
  const std::int64_t estimated = executor->later_bytes(), before = available();
  ASSERT_TRUE(executor->rehearse());
  const std::int64_t rehearsed = available(), later = executor->later_bytes();
  EXPECT_LT(later, estimated);
  EXPECT_LT(before - rehearsed, std::int64_t{64} << 20) << "its cache is gone";
  ASSERT_TRUE(executor->allocate_cache(64, 1));
  const std::int64_t cached = available();
  const SamplingParams wanted = params();
  const SequenceSampling sampling(wanted, {}, {}, 42, vocab);
  const auto step = [&](const std::vector<int>& texts) {
    const Batch batch = new_texts(texts, 1, kBlockSize, vocab);
    EXPECT_TRUE(executor->forward(batch));
    std::vector<std::int32_t> last;
    for (std::size_t s = 0; s < texts.size(); ++s) last.push_back(batch.query_starts[s + 1] - 1);
    const std::vector<SampleRow> rows(last.size(), {.sequence = &sampling, .output = {}});
    EXPECT_TRUE(executor->sample(last, rows));
    EXPECT_TRUE(executor->collect());
  };
  step({64});
  step({16, 16, 16, 16});
  constexpr auto kGraph = static_cast<std::int64_t>(cuda::emulated::kGraphBytes);
  EXPECT_LT(cached - available(), kGraph);
  for (const int sequences : {1, 2, 4})
    for (int i = 0; i < 3; ++i) step(std::vector<int>(static_cast<std::size_t>(sequences), 1));
  const std::int64_t grown = cached - available();
  EXPECT_GE(grown, 3 * kGraph);
  EXPECT_LT(grown, 4 * kGraph);
  EXPECT_LE(grown, later);
}
#endif

class ExecutorOn : public testing::TestWithParam<const char*> {};

TEST_P(ExecutorOn, CudaSaysWhatTheCpuSays) {
  auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  const auto expected = generate(make_cpu_backend({.threads = 2, .isa = {}}).value(), GetParam());
  const auto got = generate(*std::move(cuda), GetParam());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(got[i].id, expected[i].id) << "token " << i;
    const auto& a = got[i].logprobs.value();
    const auto& b = expected[i].logprobs.value();
    EXPECT_NEAR(a.logprob, b.logprob, 1e-4) << i;
    EXPECT_EQ(a.rank, b.rank);
    ASSERT_EQ(a.top.size(), 3u);
    for (std::size_t j = 0; j < a.top.size(); ++j) EXPECT_EQ(a.top[j].first, b.top[j].first);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExecutorOn, testing::Values("llama-f32", "gemma2", "qwen3"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace octavo
