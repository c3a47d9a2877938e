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

TEST(EngineMetrics, FindsItsMetricsAmongOthersOfSimilarNames) {
  EndpointState state;
  EXPECT_TRUE(
      read_engine_metrics("vllm:num_requests 1\n"
                          "vllm:num_requests_waiting{engine=\"0\"} 3\n"
                          "vllm:num_requests_waiting_bucket{le=\"1\"} 7\n"
                          "vllm:num_requests_waiting_bucket{le=\"+Inf\"} 8\n"
                          "vllm:num_requests_waiting{engine=\"1\"} 4\n"
                          "vllm:num_requests_waiting_bucket{le=\"+Inf\"} 9\n"
                          "vllm:num_requests_waiting_bucket 9\n"
                          "vllm:num_requests_running 2",
                          state));
  EXPECT_EQ(state.waiting, 7);
  EXPECT_EQ(state.running, 2);
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

TEST(EngineMetrics, ReadsTritons) {
  EndpointState state;
  EXPECT_TRUE(
      read_engine_metrics("nv_trt_llm_request_metrics{model=\"m\",request_type=\"waiting\",version=\"1\"} 4\n"
                          "nv_trt_llm_request_metrics{model=\"m\",request_type=\"scheduled\",version=\"1\"} 6\n"
                          "nv_trt_llm_request_metrics{model=\"m\",request_type=\"max\",version=\"1\"} 512\n"
                          "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.25\n"
                          "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"tokens_per\"} 64\n"
                          "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\"} 1000\n"
                          "nv_inference_exec_count{model=\"m\"} 100000\n",
                          state));
  EXPECT_EQ(state.waiting, 4);
  EXPECT_EQ(state.running, 6);
  EXPECT_EQ(state.kv_usage, 0.25);
  EXPECT_EQ(state.block_size, 64);
  EXPECT_EQ(state.num_blocks, 1000);
}

TEST(EngineMetrics, ALabelSaysWhichNamesCount) {
  const EngineKinds& kinds = known_engines();
  constexpr std::string_view kPage = "nv_inference_pending_request_count 2\nvllm:num_requests_waiting 7\n";
  struct Case {
    const char *label, *engine;
    int waiting;
  };
  for (const auto& [label, engine, waiting] : {Case{"llm-d.ai/engine-type", "triton", 2},
                                               Case{"inference.networking.k8s.io/engine-type", "triton", 2},
                                               Case{"llm-d.ai/engine-type", "vllm", 7},
                                               Case{"llm-d.ai/engine-type", "unheard-of", 7},
                                               Case{"other", "triton", 7}}) {
    EndpointState state;
    EXPECT_TRUE(read_engine_metrics(kPage, state, kinds.of({.labels = {{label, engine}}})));
    EXPECT_EQ(state.waiting, waiting) << label << "=" << engine;
  }
  EndpointState state;
  EXPECT_FALSE(read_engine_metrics(kPage, state, kinds.of({.labels = {{"llm-d.ai/engine-type", "sglang"}}})));
}

TEST(EngineMetrics, CustomOnesAreAttributes) {
  const AttributeKey depth{"depth", "core-metrics-extractor"}, other{"other", "dcgm-extractor"};
  const EngineMetrics metrics{{.metric = {"my_queue", {{"pool", "a"}}}, .attribute = depth}};
  EndpointState state;
  state.attributes = std::make_shared<const Attributes>(Attributes{{depth, 1}, {other, 2}});
  EXPECT_TRUE(read_engine_metrics("my_queue{pool=\"b\"} 5\nmy_queue{pool=\"a\"} 8\nmy_queue{pool=\"a\"} 9\n",
                                  state, metrics));
  EXPECT_EQ(state.attribute(depth), 8);
  EXPECT_EQ(state.attribute(other), 2);
  EXPECT_FALSE(state.attribute({"depth", "dcgm-extractor"}));
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

TEST(EngineMetrics, EachRankHasItsOwn) {
  constexpr std::string_view kPage = "vllm:num_requests_running{engine=\"0\"} 3\n"
                                     "vllm:num_requests_running{engine=\"1\"} 5\n"
                                     "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n"
                                     "vllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n"
                                     "vllm:num_requests_waiting 2\n";
  const auto ranks = [](std::string_view page) {
    return read_engine_page({.endpoint = std::make_shared<Endpoint>()}, page, known_engines().any, 0).ranks;
  };
  EXPECT_EQ(ranks(kPage), 2);
  EXPECT_EQ(ranks("vllm:num_requests_running 3\n"), 1);
  EXPECT_EQ(ranks("vllm:num_requests_running{engine=\"3\"} 3\n"), 1) << "one rank among others'";
  EXPECT_EQ(ranks("vllm:num_requests_running{engine=\"99999999\"} 3\n"), 1);
  EXPECT_EQ(ranks(""), 1);
  EndpointState state;
  ASSERT_TRUE(read_engine_metrics(kPage, state, known_engines().any, 1));
  EXPECT_EQ(state.running, 5);
  EXPECT_EQ(state.kv_usage, 0.25);
  EXPECT_EQ(state.waiting, 2) << "without the label it is everybody's";
  ASSERT_TRUE(read_engine_metrics(kPage, state));
  EXPECT_EQ(state.running, 8);
}

TEST(EngineMetrics, TellThatAnEndpointHasStartedAnew) {
  EndpointState state;
  const auto restarted = [&](std::string_view page) {
    const EndpointState before = state;
    EXPECT_TRUE(read_engine_metrics(page, state));
    return has_restarted(before, state);
  };
  EXPECT_FALSE(restarted("vllm:num_requests_running 1\n"));
  EXPECT_FALSE(restarted("vllm:prompt_tokens_total{engine=\"0\"} 5\nvllm:prompt_tokens_total{engine=\"1\"} 5\n"));
  EXPECT_FALSE(restarted("vllm:prompt_tokens_total 10\n"));
  EXPECT_TRUE(restarted("vllm:prompt_tokens_total 9\n")) << "the counter has begun anew";
  EXPECT_FALSE(restarted("sglang:prompt_tokens_total 12\nprocess_start_time_seconds 1.7e+09\n"));
  EXPECT_FALSE(restarted("vllm:prompt_tokens_total 13\nprocess_start_time_seconds 1700000000.4\n"));
  EXPECT_TRUE(restarted("vllm:prompt_tokens_total 14\nprocess_start_time_seconds 1700000007\n"));
  EXPECT_TRUE(restarted("vllm:prompt_tokens_total 15\nprocess_start_time_seconds 1700000008\n")) << "a second later";
  EXPECT_FALSE(read_engine_metrics("process_start_time_seconds 1\n", state)) << "says nothing of an engine";
}

}  // namespace
}  // namespace octavo::fleet
