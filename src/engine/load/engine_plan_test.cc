#include "engine/load/engine_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/backends.h"

namespace octavo {
namespace {

using testing::HasSubstr;

ModelPlanFigures some_model() {
  ModelPlanFigures model{.max_model_len = 100, .block_bytes = 1'000, .hash_seed = 7};
  model.layout.groups = {LayerGroup{}};
  model.layout.block_size = 16;
  return model;
}

EngineOptions some_options() {
  EngineOptions options;
  options.cache.memory_bytes = 64'000;
  options.schedule.max_num_seqs = 4;
  return options;
}

MemoryFigures requested(const EngineOptions& options) {
  return {.memory = {.requested = options.cache.memory_bytes}};
}

TEST(EnginePlan, AStepHasNoMoreSequencesThanTokens) {
  EngineOptions options = some_options();
  options.schedule.max_num_batched_tokens = 3;
  const SchedulerOptions s = plan_step(some_model(), options);
  EXPECT_EQ(s.max_num_seqs, 3);
  EXPECT_EQ(s.max_num_batched_tokens, 3);
  EXPECT_EQ(s.prefix_hash.seed, 7U);
  EXPECT_EQ(s.num_blocks, 0);
}

TEST(EnginePlan, APoolingStepHoldsTheLongestText) {
  EngineOptions options = some_options();
  options.schedule.max_num_batched_tokens = 10;
  ModelPlanFigures model = some_model();
  model.pools = true;
  model.caches_prefixes = false;
  const SchedulerOptions s = plan_engine(model, requested(options), options).value();
  EXPECT_EQ(s.max_num_batched_tokens, 101);
  EXPECT_FALSE(s.enable_chunked_prefill);
  EXPECT_FALSE(s.enable_prefix_caching);
  EXPECT_EQ(s.num_blocks, 101 / 16 + 4);  // no cache, only the blocks of one step
}

TEST(EnginePlan, BlocksFillTheMemory) {
  const EngineOptions options = some_options();
  MemoryFigures memory = requested(options);
  const SchedulerOptions s = plan_engine(some_model(), memory, options).value();
  EXPECT_EQ(s.num_blocks, 64);
  EXPECT_EQ(s.max_model_len, 100);
  memory.draft_block_bytes = 1'000;
  EXPECT_EQ(plan_engine(some_model(), memory, options).value().num_blocks, 32);
}

TEST(EnginePlan, AGivenNumberOfBlocksIsTaken) {
  EngineOptions options = some_options();
  options.cache.num_blocks = 9;
  EXPECT_EQ(plan_engine(some_model(), requested(options), options).value().num_blocks, 9);
}

TEST(EnginePlan, ALengthThatWasAskedForMustFitAndTheModelsOwnGivesWay) {
  EngineOptions options = some_options();
  options.cache.memory_bytes = 4'000;
  const SchedulerOptions s = plan_engine(some_model(), requested(options), options).value();
  EXPECT_EQ(s.num_blocks, 4);
  EXPECT_LT(s.max_model_len, 100);
  EXPECT_GE(s.max_model_len, 48);
  options.model.max_model_len = 100;
  const auto refused = plan_engine(some_model(), requested(options), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "kv_cache_memory_bytes");
  EXPECT_THAT(refused.error().message, HasSubstr("max_model_len 100"));
}

TEST(EnginePlan, StatesTakeAtMostHalfOfTheMemory) {
  EngineOptions options = some_options();
  options.cache.enable_prefix_caching = false;
  ModelPlanFigures model = some_model();
  model.state_bytes = 16'000;
  MemoryFigures memory = requested(options);
  const SchedulerOptions s = plan_engine(model, memory, options).value();
  EXPECT_EQ(s.max_num_seqs, 2);
  EXPECT_EQ(s.num_blocks, 32);
  EXPECT_EQ(s.draft_states, 0);
  memory.draft_states = 8;
  const SchedulerOptions drafted = plan_engine(model, memory, options).value();
  EXPECT_EQ(drafted.max_num_seqs, 1);
  EXPECT_EQ(drafted.draft_states, 1);
  model.state_bytes = 33'000;
  EXPECT_EQ(plan_engine(model, memory, options).error().field, "kv_cache_memory_bytes");
}

// In builds without CUDA, there are four emulated GPUs.
TEST(EnginePlan, ProcessesThatShareADeviceShareItsMemory) {
  const auto gpu = make_cuda_backend();
  if (!gpu) GTEST_SKIP() << gpu.error().message;
  const Device& device = *gpu->device;
  EngineOptions options = some_options();
  const auto part = [&](int engines, int ranks) {
    options.parallel.data_parallel_size = engines;
    options.parallel.tensor_parallel_size = ranks;
    return memory_of(options, device).all;
  };
  const auto whole = static_cast<std::int64_t>(device.memory_bytes());
  const int devices = device.devices_of_host();
  EXPECT_EQ(part(1, devices), whole);
  EXPECT_EQ(part(devices, 1), whole);
  EXPECT_EQ(part(1, devices + 1), whole / 2);
  EXPECT_EQ(part(3, devices), whole / 3);
}

}  // namespace
}  // namespace octavo
