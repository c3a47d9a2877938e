// Whole engines on the CUDA backend, which in builds without CUDA is an emulated device that does nothing
// until somebody waits for it: with and without recordings, one step after the other and overlapping, the
// answers must have the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <mutex>

#include "engine/load.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

class Collector final : public OutputSink {
 public:
  void deliver(Output&& output) noexcept override {
    const std::lock_guard lock(mutex_);
    tokens.insert(tokens.end(), output.token_ids.begin(), output.token_ids.end());
    for (const auto* list : {&output.logprobs, &output.prompt_logprobs})
      for (const TokenLogprobs& l : *list) logprobs.push_back(std::bit_cast<std::uint32_t>(l.logprob));
    if (!output.finished) return;
    error = output.error;
    ended_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_; });
  }

  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;
  std::string error;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;
  bool operator==(const Answer&) const = default;
};

// Prompts of many lengths, greedy and drawn, with penalties, log-probabilities of prompt and answer, and ends
// at different times, so that steps are of all sizes, mixed, and lose sequences while they run.
Request request_of(int i, int vocab) {
  Request request;
  for (int t = 0; t < 3 + 7 * i; ++t) request.prompt.push_back((5 * i + 3 * t + 1) % vocab);
  SamplingParams& p = request.sampling;
  p.max_tokens = 4 + 3 * i;
  p.ignore_eos = true;
  p.temperature = i % 2 == 0 ? 0 : 0.9;
  p.seed = 100 + i;
  p.logprobs = 2;
  if (i % 3 == 1) p.presence_penalty = 0.5;
  if (i == 2) p.prompt_logprobs = 1;
  return request;
}

std::vector<Answer> answers(EngineOptions options) {
  constexpr int kRequests = 7;
  options.threads = 2;
  options.max_num_batched_tokens = 48;
  options.max_num_seqs = 6;
  options.kv_cache_memory_bytes = 1 << 20;
  const LoadedEngine loaded = load_engine(options).value();
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < kRequests; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    EXPECT_TRUE(loaded.engine->submit(request_of(i, loaded.spec.vocab), sinks.back()));
  }
  std::vector<Answer> all;
  for (const auto& sink : sinks) {
    sink->wait();
    EXPECT_EQ(sink->error, "");
    all.push_back({sink->tokens, sink->logprobs});
  }
  return all;
}

class DeviceEngine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
    options_.model_dir = std::string("tests/data/models/") + GetParam();
    options_.device = "cuda";
  }
  EngineOptions options_;
};

TEST_P(DeviceEngine, OverlappingAndRecordedStepsChangeNoBit) {
  EngineOptions plain = options_;
  plain.enforce_eager = true;
  plain.async_scheduling = false;
  const std::vector<Answer> expected = answers(plain);
  EXPECT_EQ(expected[4].tokens.size(), 16u);
  for (const bool eager : {false, true})
    for (const bool overlapping : {false, true}) {
      EngineOptions options = options_;
      options.enforce_eager = eager;
      options.async_scheduling = overlapping;
      const std::vector<Answer> got = answers(options);
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], expected[i])
            << "request " << i << (eager ? ", eager" : ", recorded") << (overlapping ? ", overlapping" : "");
    }
}

TEST_P(DeviceEngine, SaysWhatTheCpuSaysInSinglePrecision) {
  options_.dtype = "float32";
  EngineOptions cpu = options_;
  cpu.device = "cpu";
  const std::vector<Answer> expected = answers(cpu), got = answers(options_);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].tokens, expected[i].tokens) << i;
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceEngine, testing::Values("llama", "gemma2", "phi3"),
                         [](const auto& test) { return std::string(test.param); });

// What the CUDA backend refuses runs on the CPU when no device was asked for by name, and is an error when
// CUDA was.
class Refused : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
    options_.max_num_batched_tokens = 64;
    options_.max_num_seqs = 4;
    options_.kv_cache_memory_bytes = 1 << 20;
  }
  std::string error_on_cuda() {
    EngineOptions on_cuda = options_;
    on_cuda.device = "cuda";
    const auto loaded = load_engine(on_cuda);
    return loaded ? "" : loaded.error().message;
  }
  EngineOptions options_;
};

TEST_F(Refused, QuantisedMatrices) {
  for (const char* model : {"gptq-4bit", "fp8-tensor"}) {
    options_.model_dir = std::string("tests/data/quantized/") + model;
    EXPECT_TRUE(load_engine(options_)) << model;
    EXPECT_THAT(error_on_cuda(), testing::HasSubstr("no quantised matrices"));
  }
  options_.model_dir = "tests/data/models/llama";
  options_.quantization = "int8";
  EXPECT_TRUE(load_engine(options_));
  EXPECT_THAT(error_on_cuda(), testing::HasSubstr("no quantised matrices"));
}

TEST_F(Refused, CacheFormats) {
  options_.model_dir = "tests/data/models/llama";
  options_.kv_cache_dtype = "int8_per_token_head";
  EXPECT_TRUE(load_engine(options_));
  EXPECT_THAT(error_on_cuda(), testing::HasSubstr("no KV cache in"));
}

TEST_F(Refused, WrongOptionsStayErrors) {
  options_.model_dir = "tests/data/models/llama";
  options_.max_model_len = 1 << 20;
  const auto loaded = load_engine(options_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().field, "max_model_len");
}

}  // namespace
}  // namespace octavo
