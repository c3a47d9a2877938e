#include "fleet/observe/engine_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using testing::ElementsAre;

TEST(EngineMetrics, ReadsVllms) {
  EndpointState state;
  EXPECT_TRUE(read_engine_metrics(
      "# HELP vllm:num_requests_waiting Number of requests\n"
      "# TYPE vllm:num_requests_waiting gauge\n"
      "vllm:num_requests_waiting{model_name=\"m\",engine=\"0\"} 3.0\n"
      "vllm:num_requests_waiting{model_name=\"m\",engine=\"1\"} 4\n"
      "vllm:num_requests_running{model_name=\"a } b\"} 2.0\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
      "vllm:kv_cache_usage_perc{engine=\"1\"} 5e-1\n"
      "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",num_gpu_blocks=\"1024\"} 1.0\n"
      "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"old\",waiting_lora_adapters=\"\"} "
      "1.7e9\n"
      "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"a,b\",waiting_lora_adapters=\"c\"} "
      "1.8e9\n"
      "vllm:num_requests_waiting_by_reason{reason=\"x\"} 100\n",
      state));
  EXPECT_EQ(state.waiting, 7);
  EXPECT_EQ(state.running, 2);
  EXPECT_EQ(state.kv_usage, 0.5);
  EXPECT_EQ(state.block_size, 16);
  EXPECT_EQ(state.num_blocks, 1024);
  ASSERT_TRUE(state.adapters);
  EXPECT_THAT(state.adapters->active, ElementsAre("a", "b"));
  EXPECT_THAT(state.adapters->waiting, ElementsAre("c"));
  EXPECT_EQ(state.adapters->active_max, 4);
}

TEST(EngineMetrics, ReadsSglangsAndTensorRts) {
  EndpointState state;
  EXPECT_TRUE(
      read_engine_metrics("sglang:num_queue_reqs 5\nsglang:token_usage 0.5\n"
                          "sglang:cache_config_info{num_pages=\"7\",page_size=\"64\"} 1\n",
                          state));
  EXPECT_EQ(state.waiting, 5);
  EXPECT_EQ(state.block_size, 64);
  EXPECT_EQ(state.num_blocks, 7);
  EXPECT_TRUE(
      read_engine_metrics("trtllm_kv_cache_tokens_per_block 32\ntrtllm_num_requests_running 9\n", state));
  EXPECT_EQ(state.block_size, 32);
  EXPECT_EQ(state.running, 9);
}

TEST(EngineMetrics, NonsenseIsSkipped) {
  EndpointState state;
  for (const char* page :
       {"", "\n\n", "vllm:num_requests_waiting", "vllm:num_requests_waiting{", "vllm:num_requests_waiting{} ",
        "vllm:num_requests_waiting nan", "vllm:num_requests_waiting +Inf x", "other 1"})
    EXPECT_FALSE(read_engine_metrics(page, state)) << page;
  EXPECT_TRUE(
      read_engine_metrics("vllm:num_requests_waiting -5\nvllm:num_requests_running 1e300\n"
                          "vllm:kv_cache_usage_perc 7\nvllm:cache_config_info{block_size=\"x\\\"\"} 1\n",
                          state));
  EXPECT_EQ(state.waiting, 0);
  EXPECT_EQ(state.running, 1 << 30);
  EXPECT_EQ(state.kv_usage, 1);
  EXPECT_EQ(state.block_size, 0);
}

}  // namespace
}  // namespace octavo::fleet
