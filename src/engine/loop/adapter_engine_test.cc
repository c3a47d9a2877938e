// Tests engines with LoRA adapters. An output has the same bits in a batch with many adapters as alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "base/testing/scratch_directory.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr int kAdapters = 8;
constexpr int kAdapterRequests = 16;

// Copies the golden adapter of the model with another lora_alpha, which scales the effect of the adapter.
std::string adapter(const ScratchDirectory& in, const std::string& model, int alpha) {
  const fs::path folder = in / fmt::format("a{}", alpha);
  fs::copy("tests/data/adapters/" + model, folder);
  std::ifstream file(folder / "adapter_config.json");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kField = "\"lora_alpha\": ";
  const std::size_t value = text.find(kField) + kField.size();
  text.replace(value, text.find(',', value) - value, std::to_string(alpha));
  in.write(fmt::format("a{}/adapter_config.json", alpha), text);
  return folder;
}

std::vector<Request> requests(int vocab) {
  std::vector<Request> all;
  for (int i = 0; i < kAdapterRequests; ++i) {
    Request& request = all.emplace_back(request_of(i % 7, vocab));
    if (const int alpha = i % (kAdapters + 1); alpha > 0)
      request.identity.adapter = fmt::format("a{}", alpha);
  }
  return all;
}

TEST(AdapterEngine, ABatchOfEightAdaptersSaysWhatEachSaysAlone) {
  for (const std::string model : {"llama-f32", "qwen2_moe", "mistral",
                                  // mistral: embedding and output matrix; qwen3_moe: experts
                                  "qwen3_moe"}) {
    SCOPED_TRACE(model);
    const ScratchDirectory folders;
    EngineOptions options;
    options.model.dir = "tests/data/models/" + model;
    options.device.type = "cpu";
    options.device.threads = 2;
    options.schedule.max_num_batched_tokens = 256;
    options.schedule.max_num_seqs = kAdapterRequests;
    options.cache.memory_bytes = 4 << 20;
    options.cache.enable_prefix_caching = false;
    options.lora = {.enabled = true, .max_loras = kAdapters, .max_lora_rank = 8, .max_cpu_loras = {}};
    std::vector<std::string> paths;
    for (int alpha = 1; alpha <= kAdapters; ++alpha) paths.push_back(adapter(folders, model, alpha));
    const auto load = [&](const EngineOptions& with) {
      auto engine = load_engine(with).value();
      for (int alpha = 1; alpha <= kAdapters; ++alpha) {
        std::promise<bool> done;
        engine->load_adapter({fmt::format("a{}", alpha), paths[static_cast<std::size_t>(alpha - 1)]},
                             [&](const Result<>& result) { done.set_value(result.has_value()); });
        EXPECT_TRUE(done.get_future().get());
      }
      return engine;
    };
    const auto engine = load(options);
    const std::vector<Request> all = requests(engine->info().vocab_size);
    std::vector<CollectedAnswer> alone;
    for (const Request& request : all) alone.push_back(answers_to(*engine, {request})[0]);
    EXPECT_NE(alone[0].logprobs, alone[7].logprobs);
    EXPECT_EQ(answers_to(*engine, all), alone);

    EngineOptions narrow = options;  // small steps and few blocks, so that some sequences are preempted
    narrow.schedule.max_num_batched_tokens = 24;
    narrow.cache.num_blocks = 12;
    EXPECT_EQ(answers_to(*load(narrow), all), alone);
    EngineOptions speculating = options;
    speculating.speculation = SpeculativeOptions{.method = NgramOptions{1, 2}, .num_speculative_tokens = 3};
    speculating.speculation->per_batch_size = {{1, kAdapterRequests, 3}};
    const auto guessing = load(speculating);
    EXPECT_EQ(answers_to(*guessing, all), alone);
    EXPECT_GT(guessing->own_stats().drafts.tokens, 0);
  }
}

// Decoding steps with adapters are CUDA graphs, which are captured again after each change of the adapters in
// memory. Only two of the three adapters are in memory at a time.
TEST(AdapterEngine, RecordedStepsChangeNoBit) {
  if (const auto cuda = make_cuda_backend(); !cuda) GTEST_SKIP() << cuda.error().message;
  for (const std::string model : {"llama-f32", "mistral"}) {
    SCOPED_TRACE(model);
    const ScratchDirectory folders;
    EngineOptions options;
    options.model.dir = "tests/data/models/" + model;
    options.device.type = "cuda";
    options.device.threads = 2;
    options.schedule.max_num_batched_tokens = 48;
    options.schedule.max_num_seqs = 6;
    options.cache.memory_bytes = 1 << 20;
    options.lora = {.enabled = true, .max_loras = 2, .max_lora_rank = 8, .max_cpu_loras = {}};
    std::vector<std::string> paths;
    for (int alpha = 1; alpha <= 3; ++alpha) paths.push_back(adapter(folders, model, alpha));
    const auto answers = [&](bool eager) {
      EngineOptions with = options;
      with.device.enforce_eager = eager;
      const auto engine = load_engine(with).value();
      std::vector<Request> requests;
      for (int i = 0; i < 8; ++i) {
        Request& request = requests.emplace_back(request_of(i % 5, engine->info().vocab_size));
        if (i % 4 > 0) request.identity.adapter = fmt::format("a{}", i % 4);
      }
      for (int alpha = 1; alpha <= 3; ++alpha) {
        std::promise<bool> done;
        engine->load_adapter({fmt::format("a{}", alpha), paths[static_cast<std::size_t>(alpha - 1)]},
                             [&](const Result<>& result) { done.set_value(result.has_value()); });
        EXPECT_TRUE(done.get_future().get());
      }
      const std::vector<CollectedAnswer> together = answers_to(*engine, requests);
      EXPECT_EQ(answers_to(*engine, {requests[1]})[0], together[1]);
      EXPECT_NE(together[0].logprobs, together[5].logprobs);
      return together;
    };
    EXPECT_EQ(answers(false), answers(true));
  }
}

TEST(AdapterEngine, GgufModelsTakeGgufAdapters) {
  const std::string folder = "tests/data/adapters/llama-gguf/";
  EngineOptions options;
  options.model.dir = folder + "model.gguf";
  options.device.type = "cpu";
  options.device.threads = 2;
  options.cache.memory_bytes = 4 << 20;
  options.lora = {.enabled = true, .max_loras = 1, .max_lora_rank = 8, .max_cpu_loras = {}};
  const auto engine = load_engine(options).value();
  std::promise<bool> done;
  engine->load_adapter({"a", folder + "adapter.gguf"},
                       [&](const Result<>& result) { done.set_value(result.has_value()); });
  ASSERT_TRUE(done.get_future().get());
  Request request = request_of(0, engine->info().vocab_size);
  const auto of_base = answers_to(*engine, {request});
  request.identity.adapter = "a";
  EXPECT_NE(answers_to(*engine, {request})[0].logprobs, of_base[0].logprobs);
}

}  // namespace
}  // namespace octavo
