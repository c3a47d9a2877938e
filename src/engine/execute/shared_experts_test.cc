// Tests engines (threads) that share experts. Every output must have the same bits as the output of an
// engine with all experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "dist/tcp_socket.h"
#include "engine/load/load.h"
#include "engine/testing/answers.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr int kRequests = 6;

EngineOptions mixture(const std::string& model) {
  EngineOptions options;
  options.model.dir = "tests/data/models/" + model;
  options.device.type = "cpu";
  options.device.threads = 1;
  options.cache.num_blocks = 60;
  options.model.max_model_len = 160;
  return options;
}

using Engines = std::vector<Result<std::unique_ptr<Engine>>>;

Engines load_all(EngineOptions options, int count) {
  const auto port = reserve_port().value();
  options.parallel.nodes.expert_port = port.second;
  options.parallel.enable_expert_parallel = true;
  options.parallel.data_parallel_size = options.parallel.nodes.expert_engines = count;
  options.device.threads = count;
  std::vector<std::future<Result<std::unique_ptr<Engine>>>> loading;
  for (options.index = 0; options.index < count; ++options.index)
    loading.push_back(std::async(std::launch::async, [options] { return load_engine(options); }));
  Engines engines;
  for (auto& one : loading) engines.push_back(one.get());
  return engines;
}

class SharedExperts : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, SharedExperts,
                         testing::Values("qwen3_moe", "deepseek_v3", "gpt_oss", "qwen2_moe", "llama4"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(SharedExperts, AnswersAreThoseOfOneEngineToTheBit) {
  const EngineOptions options = mixture(GetParam());
  const auto alone = load_engine(options).value();
  const std::vector<CollectedAnswer> expected = answers_of(*alone, kRequests);
  const Engines engines = load_all(options, 2);
  for (const auto& engine : engines) ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(answers_of(**engines[0], kRequests), expected) << "the other engine assists";
  EXPECT_EQ(answers_of(**engines[1], kRequests), expected) << "the other engine assists";
  std::vector<std::future<std::vector<CollectedAnswer>>> both;
  for (const auto& engine : engines)
    both.push_back(std::async(std::launch::async, [&] { return answers_of(*engine.value(), kRequests); }));
  for (auto& answers : both) EXPECT_EQ(answers.get(), expected) << "both compute";
}

TEST(SharedExpertsOf, ThreeEnginesMoveTheirExpertsAndNoBitChanges) {
  EngineOptions options = mixture("qwen3_moe");
  const auto alone = load_engine(options).value();
  const std::vector<CollectedAnswer> expected = answers_of(*alone, kRequests);
  options.parallel.expert_balancing = {.enabled = true,
                                       .window_size = 3,
                                       .step_interval = 4,
                                       .redundant_experts = 2,
                                       .log_balancedness = true};
  const Engines engines = load_all(options, 3);
  for (const auto& engine : engines) ASSERT_TRUE(engine) << engine.error().message;
  for (int round = 0; round < 3; ++round)
    for (const auto& engine : engines) EXPECT_EQ(answers_of(**engine, kRequests), expected);
}

TEST(SharedExpertsOf, WhatCannotBeSharedIsRefused) {
  const auto error = [](const EngineOptions& options, int count) {
    const Engines engines = load_all(options, count);
    for (const auto& engine : engines) EXPECT_FALSE(engine);
    return engines[0] ? "" : engines[0].error().field + ": " + engines[0].error().message;
  };
  EXPECT_THAT(error(mixture("llama"), 2),
              HasSubstr("enable_expert_parallel: LlamaForCausalLM has no experts"));
  EngineOptions adapted = mixture("qwen3_moe");
  adapted.lora.enabled = true;
  EXPECT_THAT(error(adapted, 2),
              HasSubstr("enable_lora: LoRA cannot be combined with --enable-expert-parallel"));
}

}  // namespace
}  // namespace octavo
