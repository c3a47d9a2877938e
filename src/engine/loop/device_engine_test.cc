// Tests engines on the CUDA backend. Builds without CUDA use an emulated device, which makes progress only
// while a thread waits for it. Outputs have the same bits with and without CUDA graphs, and with serial and
// overlapping steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/testing/eventually.h"
#include "base/testing/length.h"
#include "base/testing/scratch_directory.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "kernels/backends.h"
#ifdef OCTAVO_CUDA_EMULATED
#include "kernels/cuda/emulator/memory.h"
#endif

namespace octavo {
namespace {

Result<std::unique_ptr<Engine>> make_engine(EngineOptions options) {
  options.device.threads = 2;
  options.schedule.max_num_batched_tokens = 48;
  options.schedule.max_num_seqs = 6;
  options.cache.memory_bytes = 1 << 20;
  return load_engine(options);
}
std::vector<CollectedAnswer> answers(const EngineOptions& options) {
  return answers_of(*make_engine(options).value(), 7);
}

class DeviceEngine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
    options_.model.dir = std::string("tests/data/models/") + GetParam();
    options_.device.type = "cuda";
  }
  EngineStats expect_back_from(const KvTierOptions& tier);

  EngineOptions options_;
};

// Tests that run with only a few models by default.
class DeviceEngineParts : public DeviceEngine {};

TEST_P(DeviceEngine, OverlappingAndRecordedStepsChangeNoBit) {
  EngineOptions plain = options_;
  plain.device.enforce_eager = true;
  plain.device.async_scheduling = false;
  const std::vector<CollectedAnswer> expected = answers(plain);
  EXPECT_EQ(expected[4].tokens.size(), 16u);
  for (const bool eager : {false, true})
    for (const bool overlapping : {false, true}) {
      if (eager && !overlapping) continue;  // the same settings as `plain`
      if ((eager || !overlapping) && !long_tests()) continue;
      EngineOptions options = options_;
      options.device.enforce_eager = eager;
      options.device.async_scheduling = overlapping;
      const std::vector<CollectedAnswer> got = answers(options);
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], expected[i])
            << "request " << i << (eager ? ", eager" : ", recorded") << (overlapping ? ", overlapping" : "");
    }
}

// The cache gets the memory that the largest steps leave free.
TEST_P(DeviceEngineParts, MeasuresWhatTheCacheCanHave) {
  const std::vector<CollectedAnswer> expected = answers(options_);
  EngineOptions options = options_;
  options.device.threads = 2;
  options.schedule.max_num_batched_tokens = 48;
  options.schedule.max_num_seqs = 6;
  const auto engine = load_engine(options).value();
  EXPECT_GT(engine->info().cache.bytes, 0);
  EXPECT_TRUE(answers_of(*engine, 7) == expected);
}

TEST_P(DeviceEngine, SaysWhatTheCpuSaysInSinglePrecision) {
  options_.model.dtype = "float32";
  EngineOptions cpu = options_;
  cpu.device.type = "cpu";
  const std::vector<CollectedAnswer> expected = answers(cpu), got = answers(options_);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
}

// In single precision, both backends store the same codes.
TEST_P(DeviceEngineParts, SaysWhatTheCpuSaysWithCachesOfFourBits) {
  if (GetParam() == std::string_view("deepseek_v32")) GTEST_SKIP() << "latent attention";
  options_.model.dtype = "float32";
  options_.cache.dtype = "int4_per_token_head";
  EngineOptions cpu = options_;
  cpu.device.type = "cpu";
  const std::vector<CollectedAnswer> expected = answers(cpu), got = answers(options_);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
}

#ifdef OCTAVO_CUDA_EMULATED
// While another program uses the memory of the cache, wake_up() fails, and the engine stays asleep.
TEST_P(DeviceEngineParts, WakesWhenTheCacheHasItsMemory) {
  const auto engine = make_engine(options_).value();
  const auto wait_for = [](const auto& call) {
    std::promise<Result<>> done;
    call([&](Result<> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
  };
  const auto wake = [&] { return wait_for([&](auto done) { engine->wake_up(done); }); };
  const std::vector<CollectedAnswer> expected = answers_of(*engine, 7);
  Request request;
  request.prompt = {1, 2, 3};
  ASSERT_TRUE(wait_for([&](auto done) { engine->sleep(1, done); }));
  cuda::emulated::set_memory_full(true);
  for (int i = 0; i < 2; ++i) {
    const Result<> refused = wake();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("the engine stays asleep"));
    EXPECT_EQ(engine->submit(request, nullptr).error().message, "the engine is asleep");
  }
  cuda::emulated::set_memory_full(false);
  EXPECT_TRUE(wake());
  EXPECT_TRUE(answers_of(*engine, 7) == expected);
}
#endif

// Blocks are stored while steps run, and are loaded into blocks that steps have just freed.
TEST_P(DeviceEngineParts, PromptsComeBackFromATierToTheBit) {
  const ScratchDirectory folder;
  expect_back_from({.path_or_url = folder.path(), .bytes = std::int64_t{1} << 30, .load_always = true});
}

// Tests --kv-offloading-size on a device with separate memory.
TEST_P(DeviceEngineParts, PromptsComeBackFromHostMemoryToTheBit) {
  const ScratchDirectory folder;
  const auto stats = expect_back_from({.path_or_url = folder / "unused",
                                       .bytes = std::int64_t{1} << 24,
                                       .on_host_of_device = true,
                                       .load_always = true});
  EXPECT_FALSE(std::filesystem::exists(folder / "unused"));
  EXPECT_FALSE(stats.kv_tier.enabled);
  EXPECT_EQ(stats.kv_host_tier.enabled, stats.kv_transfer.enabled);
}

EngineStats DeviceEngine::expect_back_from(const KvTierOptions& tier) {
  options_.cache.dtype = "int8_per_token_head";
  const std::vector<CollectedAnswer> expected = answers(options_);
  options_.kv_transfer = {.enabled = true, .tier = tier};
  options_.cache.num_blocks = 48;
  const auto engine = make_engine(options_);
  if (!engine) {
    EXPECT_THAT(engine.error().message, testing::HasSubstr("for models with recurrent layers"));
    return {};
  }
  // Repeats, because blocks are stored while steps run, so the first rounds may find no block.
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(answers_of(**engine, 7) == expected);
    (*engine)->reset_prefix_cache();
    return (*engine)->own_stats().kv_transfer.hits > 0;
  }));
  return (*engine)->own_stats();
}

class HostExpertsEngine : public DeviceEngine {};

// The CPU computes the experts in steps of all sizes, with and without CUDA graphs and overlapping steps.
TEST_P(HostExpertsEngine, OverlappingAndRecordedStepsChangeNoBit) {
  const std::string quantised =
      GetParam() == std::string_view("gpt_oss") ? "gpt_oss-mxfp4" : "qwen3_moe-w4a16-group";
  for (const std::string& folder : {options_.model.dir, "tests/data/quantized/" + quantised}) {
    EngineOptions plain = options_;
    plain.model.dir = folder;
    plain.device.expert_layers_on_host = 1000;
    plain.device.enforce_eager = true;
    plain.device.async_scheduling = false;
    EngineOptions options = plain;
    options.device.enforce_eager = false;
    options.device.async_scheduling = true;
    EXPECT_EQ(answers(options), answers(plain)) << folder;
  }
}

TEST_P(HostExpertsEngine, SaysWhatTheCpuSaysInSinglePrecision) {
  options_.model.dtype = "float32";
  EngineOptions cpu = options_;
  cpu.device.type = "cpu";
  const std::vector<CollectedAnswer> expected = answers(cpu);
  for (const int layers : {1, 1000}) {
    options_.device.expert_layers_on_host = layers;
    const std::vector<CollectedAnswer> got = answers(options_);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HostExpertsEngine, testing::Values("qwen3_moe", "gpt_oss"),
                         [](const auto& test) { return std::string(test.param); });
INSTANTIATE_TEST_SUITE_P(Models, DeviceEngine,
                         testing::Values("llama", "gemma2", "phi3", "qwen3_next", "deepseek_v32",
                                         "deepseek_v4"),
                         [](const auto& test) { return std::string(test.param); });
INSTANTIATE_TEST_SUITE_P(Models, DeviceEngineParts,
                         testing::ValuesIn(long_tests() ? std::vector{"llama", "gemma2", "phi3", "qwen3_next",
                                                                      "deepseek_v32"}
                                                        : std::vector{"llama", "qwen3_next"}),
                         [](const auto& test) { return std::string(test.param); });

// Decode steps read the keys of a common prefix once for several sequences. minimax_m3 has layers whose
// queries choose blocks of tokens.
TEST(DeviceEnginePrefixes, ChangeNoBit) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  for (const char* model : {"llama", "gemma2", "minimax_m3"}) {
    EngineOptions options;
    options.model.dir = std::string("tests/data/models/") + model;
    options.device.type = "cuda";
    const auto engine = make_engine(options).value();
    const int vocab = engine->info().vocab_size;
    std::vector<Request> requests;
    for (int i = 0; i < 4; ++i) {
      requests.push_back(request_of(i, vocab));
      std::vector<TokenId>& prompt = requests.back().prompt;
      for (int t = 0; t < 144; ++t) prompt.insert(prompt.begin() + t, (7 * t + 2) % vocab);
      requests.back().sampling.logprobs.prompt = std::nullopt;  // with it, the prompt would not use the cache
    }
    const std::vector<CollectedAnswer> expected = answers_one_by_one(*engine, requests);
    EXPECT_EQ(answers_to(*engine, requests), expected) << model;
  }
}

// If the CUDA backend does not support a feature, `auto` selects the CPU. If the user requested CUDA, the
// engine returns an error.
class Refused : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
    options_.schedule.max_num_batched_tokens = 64;
    options_.schedule.max_num_seqs = 4;
    options_.cache.memory_bytes = 1 << 20;
  }
  std::string error_on_cuda() {
    EngineOptions on_cuda = options_;
    on_cuda.device.type = "cuda";
    const auto loaded = load_engine(on_cuda);
    return loaded ? "" : loaded.error().message;
  }
  EngineOptions options_;
};

TEST_F(Refused, NoQuantisedMatrices) {
  for (const char* model : {"gptq-4bit", "fp8-tensor"}) {
    options_.model.dir = std::string("tests/data/quantized/") + model;
    EXPECT_EQ(error_on_cuda(), "") << model;
  }
  options_.model.dir = "tests/data/models/llama";
  options_.model.quantization = "int8";
  EXPECT_EQ(error_on_cuda(), "");
}

TEST_F(Refused, FixedKeys) {
  options_.model.dir = "tests/data/models/pangu_pro";
  EXPECT_TRUE(load_engine(options_));
  EXPECT_THAT(
      error_on_cuda(),
      testing::HasSubstr("attention with fixed keys, which device cuda does not support; set --device cpu"));
}

TEST_F(Refused, WrongOptionsStayErrors) {
  options_.model.dir = "tests/data/models/llama";
  options_.model.max_model_len = 1 << 20;
  const auto loaded = load_engine(options_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().field, "max_model_len");
}

}  // namespace
}  // namespace octavo
