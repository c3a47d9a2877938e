#include "serve/metrics.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, ExposeWhatWasObserved) {
  Metrics metrics("a \"model\"", 2048);
  metrics.first_token(0, 0.03);
  metrics.first_token(0, 5000);
  AnswerRecord record;
  record.reason = FinishReason::length;
  record.prompt_tokens = 7;
  record.generation_tokens = 3;
  record.preemptions = 2;
  record.times = {.arrived_us = 1'000'000,
                  .scheduled_us = 1'100'000,
                  .first_token_us = 1'200'000,
                  .last_token_us = 1'300'000};
  record.finished_us = 1'300'000;
  metrics.answer_ended(record);
  EngineStats engine;
  engine.requests.running = 4;
  engine.blocks.total = 8;
  engine.blocks.used = 2;
  engine.tokens.generation = 99;
  engine.tokens.prompt = 20;
  engine.tokens.prompt_cached = 16;
  for (const int tokens : {1, 8, 9, 20'000}) engine.step_tokens.observe(tokens);
  engine.grammars.cache_hits = 5;
  const std::string text = metrics.text({&engine, 1}, {.block_size = 32, .max_model_len = 128});
  const std::string labels = R"(model_name="a \"model\"",engine="0")";
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running{" + labels + "} 4\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_cache_usage_perc{" + labels + "} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("vllm:cache_config_info{" + labels +
                              ",block_size=\"32\",num_gpu_blocks=\"8\","
                              "kv_cache_size_tokens=\"256\",kv_cache_max_concurrency=\"2.00\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{" +
                              labels + "} 99\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:prompt_tokens_by_source_total{" + labels + ",source=\"local_compute\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("vllm:iteration_tokens_total_bucket{" + labels + ",le=\"8\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:iteration_tokens_total_bucket{" + labels + ",le=\"16384\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("vllm:iteration_tokens_total_bucket{" + labels + ",le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("vllm:iteration_tokens_total_sum{" + labels + "} 20018\n"));
  EXPECT_THAT(text, HasSubstr("vllm:grammar_cache_hits_total{" + labels + "} 5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_success_total{" + labels + ",finished_reason=\"length\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{" + labels + ",le=\"0.02\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{" + labels + ",le=\"0.04\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_bucket{" + labels + ",le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_bucket{" + labels + ",le=\"5\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_bucket{" + labels + ",le=\"10\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_num_preemptions_bucket{" + labels + ",le=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_num_preemptions_bucket{" + labels + ",le=\"2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:e2e_request_latency_seconds_sum{" + labels + "} 0.3\n"));
}

// The loaded tokens that answers use are counted separately, because `hits` also counts loads for requests
// that never start.
TEST(Metrics, LoadedTokensCountWhenTheirAnswerBegins) {
  Metrics metrics("demo", 2048);
  EngineStats engine;
  engine.tokens.prompt = 40;
  engine.tokens.prompt_cached = 32;
  const auto device = [&] {
    const std::string text = metrics.text({&engine, 1}, {});
    constexpr std::string_view kDevice =
        R"(cached_by_source_total{model_name="demo",engine="0",source="device"} )";
    const std::size_t at = text.find(kDevice);
    return at == std::string::npos ? "none" : text.substr(at + kDevice.size(), 3);
  };
  EXPECT_EQ(device(), "32\n");
  engine.kv_transfer.hits = 30;
  EXPECT_EQ(device(), "32\n") << "a load alone takes nothing from the device's tokens";
  engine.tokens.prompt_cached += 16;
  engine.kv_transfer.used_by_source = {0, 0, 16};
  EXPECT_EQ(device(), "32\n");
  const std::string text = metrics.text({&engine, 1}, {});
  EXPECT_THAT(text, HasSubstr(R"(cached_by_source_total{model_name="demo",engine="0",source="disk"} 16)"));
  EXPECT_THAT(text,
              HasSubstr(R"(by_source_total{model_name="demo",engine="0",source="local_cache_hit"} 32)"));
  EXPECT_THAT(text,
              HasSubstr(R"(by_source_total{model_name="demo",engine="0",source="external_kv_transfer"} 16)"));
}

TEST(Metrics, ATierAndSleepAreTold) {
  EngineStats engine;
  engine.condition.sleep_level = 2;
  engine.kv_tier = {.enabled = true, .off = true, .blocks = 3, .block_bytes = 100, .stored_bytes = 7,
                    .load_seconds = 0.5};
  engine.kv_host_tier = {.enabled = true, .blocks = 2, .block_bytes = 10, .loaded_bytes = 5};
  const std::string text = Metrics("m", 2048).text({&engine, 1}, {});
  const std::string labels = R"(model_name="m",engine="0")";
  EXPECT_THAT(text, HasSubstr("vllm:engine_sleep_state{" + labels + ",sleep_state=\"awake\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:engine_sleep_state{" + labels + ",sleep_state=\"discard_all\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_tier_off{" + labels + ",tier=\"STORAGE\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_tier_off{" + labels + ",tier=\"CPU\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_tier_usage_bytes{" + labels + ",tier=\"STORAGE\"} 300\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_tier_usage_bytes{" + labels + ",tier=\"CPU\"} 20\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_offload_total_bytes_total{" + labels + ",transfer_type=\"CPU_to_GPU\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_offload_total_bytes_total{" + labels +
                              ",transfer_type=\"CPU_to_STORAGE\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("vllm:kv_offload_total_time_total{" + labels +
                              ",transfer_type=\"STORAGE_to_CPU\"} 0.5\n"));
  engine.kv_host_tier.enabled = false;
  EXPECT_THAT(Metrics("m", 2048).text({&engine, 1}, {}), Not(HasSubstr("\"CPU\"")));
  engine.kv_tier.enabled = false;
  EXPECT_THAT(Metrics("m", 2048).text({&engine, 1}, {}), Not(HasSubstr("kv_tier")));
}

TEST(Metrics, WhyRequestsWait) {
  EngineStats engine;
  engine.requests.waiting = 5;
  engine.requests.deferred = 2;
  const std::string text = Metrics("m", 2048).text({&engine, 1}, {});
  const std::string name = R"(vllm:num_requests_waiting_by_reason{model_name="m",engine="0",reason=)";
  EXPECT_THAT(text, HasSubstr(name + "\"capacity\"} 3\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"deferred\"} 2\n"));
}

TEST(Metrics, EachEngineHasItsOwnLines) {
  Metrics metrics("m", 64);
  std::vector<EngineStats> engines(2);
  for (int i = 0; i < 2; ++i) {
    engines[static_cast<std::size_t>(i)].engine = i;
    engines[static_cast<std::size_t>(i)].requests.running = 10 + i;
  }
  metrics.first_token(1, 0.5);
  const std::string text = metrics.text(engines, {});
  EXPECT_THAT(text, HasSubstr("# TYPE vllm:num_requests_running gauge\n"
                              "vllm:num_requests_running{model_name=\"m\",engine=\"0\"} 10\n"
                              "vllm:num_requests_running{model_name=\"m\",engine=\"1\"} 11\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"m\",engine=\"0\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:time_to_first_token_seconds_count{model_name=\"m\",engine=\"1\"} 1\n"));
}

}  // namespace
}  // namespace octavo
