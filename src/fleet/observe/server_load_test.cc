#include "fleet/observe/server_load.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo::fleet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::string_view kPage = R"(# HELP vllm:num_requests_running Requests in the running batch.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="a",engine="0"} 3
vllm:num_requests_running{model_name="a",engine="1"} 4
vllm:num_requests_waiting{model_name="a",engine="0"} 2
vllm:kv_cache_usage_perc{model_name="a",engine="0"} 0.25
vllm:kv_cache_usage_perc{model_name="a",engine="1"} 0.75
vllm:generation_tokens_total{model_name="a",engine="0"} 1000
vllm:prompt_tokens_total{model_name="a",engine="0"} 500
vllm:request_success_total{model_name="a",engine="0",finished_reason="stop"} 7
vllm:request_success_total{model_name="a",engine="0",finished_reason="length"} 3
vllm:prefix_cache_queries_total{model_name="a",engine="0"} 200
vllm:prefix_cache_hits_total{model_name="a",engine="0"} 50
vllm:time_to_first_token_seconds_bucket{model_name="a",engine="0",le="0.1"} 5
vllm:time_to_first_token_seconds_bucket{model_name="a",engine="0",le="0.2"} 10
vllm:time_to_first_token_seconds_bucket{model_name="a",engine="0",le="+Inf"} 10
vllm:time_to_first_token_seconds_bucket{model_name="a",engine="1",le="0.1"} 0
vllm:time_to_first_token_seconds_bucket{model_name="a",engine="1",le="0.2"} 0
vllm:time_to_first_token_seconds_bucket{model_name="a",engine="1",le="+Inf"} 0
nonsense
)";

TEST(ServerLoad, AddsUpWhatAPageSaysOfItsEngines) {
  const ServerLoad load = read_server_load(kPage).value();
  EXPECT_EQ(load.running, 7);
  EXPECT_EQ(load.waiting, 2);
  EXPECT_EQ(load.kv_usage, 0.75);
  EXPECT_EQ(load.generation_tokens, 1000);
  EXPECT_EQ(load.finished, 10);
  ASSERT_EQ(load.first_token.size(), 3u);
  EXPECT_EQ(load.first_token[1].count, 10);
  EXPECT_EQ(load.first_token[2].bound, kInfinity);
  EXPECT_TRUE(load.token_gap.empty());
}

TEST(ServerLoad, APageWithoutCountsOfAnEngineIsNoLoad) {
  for (const char* page :
       {"", "<html>sign in</html>", "sglang:num_running_reqs 3\n", "vllm:num_requests_running NaN\n",
        "vllm:num_requests_waiting{engine=\"0\"} -1\n", "vllm:prompt_tokens_total +Inf\n",
        "vllm:generation_tokens_total 1e300\n", "vllm:request_success_total\n"})
    EXPECT_FALSE(read_server_load(page)) << page;
  EXPECT_TRUE(read_server_load("octavo:model_loaded{model_name=\"a\"} 0\n")) << "no model is loaded";
  EXPECT_TRUE(read_server_load("vllm:num_requests_running 0\nvllm:another NaN\n"));
}

TEST(ServerLoad, SubtractsCountersAndKeepsGauges) {
  ServerLoad before = read_server_load(kPage).value(), now = before;
  now.generation_tokens += 64;
  now.running = 1;
  now.first_token[2].count += 2;
  ServerLoad interval = since(before, now);
  EXPECT_EQ(interval.generation_tokens, 64);
  EXPECT_EQ(interval.running, 1);
  EXPECT_EQ(interval.first_token[0].count, 0);
  EXPECT_EQ(interval.first_token[2].count, 2);
  before.generation_tokens = 1e6;
  EXPECT_EQ(since(before, now).generation_tokens, 1064) << "it has started again";
}

TEST(ServerLoad, QuantilesAreInterpolated) {
  const Buckets buckets{{0.1, 5}, {0.2, 10}, {kInfinity, 10}};
  EXPECT_DOUBLE_EQ(quantile(buckets, 0.25), 0.05);
  EXPECT_DOUBLE_EQ(quantile(buckets, 0.5), 0.1);
  EXPECT_DOUBLE_EQ(quantile(buckets, 0.9), 0.18);
  EXPECT_DOUBLE_EQ(quantile({{0.1, 1}, {kInfinity, 4}}, 0.9), 0.1) << "beyond the last bound";
  EXPECT_LT(quantile({}, 0.5), 0);
  EXPECT_LT(quantile({{0.1, 0}, {kInfinity, 0}}, 0.5), 0);
}

}  // namespace
}  // namespace octavo::fleet
