#include "fleet/autoscale/replica_watch.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

std::string page(int requests, int waiting) {
  return fmt::format(
      "vllm:num_requests_running{{engine=\"0\"}} 2\nvllm:num_requests_waiting{{engine=\"0\"}} {1}\n"
      "vllm:prompt_tokens_total{{engine=\"0\"}} {2}\nvllm:generation_tokens_total{{engine=\"0\"}} {0}\n"
      "vllm:request_success_total{{engine=\"0\",finished_reason=\"stop\"}} {0}\n"
      "vllm:time_to_first_token_seconds_bucket{{engine=\"0\",le=\"0.5\"}} 0\n"
      "vllm:time_to_first_token_seconds_bucket{{engine=\"0\",le=\"1.0\"}} {0}\n"
      "vllm:time_to_first_token_seconds_bucket{{engine=\"0\",le=\"+Inf\"}} {0}\n"
      "vllm:request_time_per_output_token_seconds_bucket{{engine=\"0\",le=\"0.02\"}} {0}\n"
      "vllm:request_time_per_output_token_seconds_bucket{{engine=\"0\",le=\"+Inf\"}} {0}\n",
      requests, waiting, requests * 9);
}

TEST(ReplicaWatch, CountsFromTheFirstReading) {
  ReplicaWatch watch(0.5);
  FleetReading first = watch.read({{"a", page(1000, 3)}});
  ASSERT_EQ(first.replicas.size(), 1U);
  EXPECT_EQ(first.replicas[0].tokens, 0);
  EXPECT_EQ(first.replicas[0].waiting, 3);
  EXPECT_LT(first.replicas[0].ttft_ms, 0);
  const FleetReading second = watch.read({{"a", page(1010, 0)}, {"b", page(7, 0)}});
  ASSERT_EQ(second.replicas.size(), 2U);
  EXPECT_EQ(second.replicas[0].tokens, 100);
  EXPECT_EQ(second.replicas[0].finished, 10);
  EXPECT_DOUBLE_EQ(second.replicas[0].ttft_ms, 750);
  EXPECT_DOUBLE_EQ(second.replicas[0].tpot_ms, 10);
  EXPECT_EQ(second.replicas[1].tokens, 0);
}

TEST(ReplicaWatch, EachPoolCountsItsOwnTokens) {
  for (const auto& [pool, tokens] : {std::pair(Pool::prefill, 90), {Pool::decode, 10}, {Pool::both, 100}}) {
    ReplicaWatch watch(0.5, pool);
    watch.read({{"a", page(1000, 0)}});
    EXPECT_EQ(watch.read({{"a", page(1010, 0)}}).replicas[0].tokens, tokens);
  }
}

TEST(ReplicaWatch, ARoutersQueueIsReadFromItsMetrics) {
  EXPECT_EQ(queued_requests("# HELP x\nllm_d_epp_flow_control_queue_size{priority=\"0\"} 2\n"
                            "llm_d_epp_flow_control_queue_size{priority=\"-1\"} 3\nother 7\n"),
            5);
}

TEST(ReplicaWatch, ASilentOneIsCountedAndWhatItDidIsNotLost) {
  ReplicaWatch watch(0.9);
  watch.read({{"a", page(100, 0)}});
  const FleetReading silent = watch.read({{"a", failure(ErrorCode::io, "refused")}});
  EXPECT_TRUE(silent.replicas.empty());
  EXPECT_EQ(silent.silent, 1);
  EXPECT_EQ(watch.read({{"a", page(120, 0)}}).replicas[0].tokens, 200);
}

TEST(ReplicaWatch, OneWithoutMetricsOfAnEngineIsSilentNotIdle) {
  ReplicaWatch watch(0.9);
  watch.read({{"a", page(100, 0)}});
  const FleetReading silent = watch.read({{"a", "<html>sign in</html>"}});
  EXPECT_TRUE(silent.replicas.empty());
  EXPECT_EQ(silent.silent, 1);
  EXPECT_TRUE(silent.problem.starts_with("a: ")) << silent.problem;
  EXPECT_EQ(watch.read({{"a", page(120, 0)}}).replicas[0].tokens, 200) << "not all tokens since its start";
}

TEST(ReplicaWatch, SilentReplicasExistUnlessNoneAnswers) {
  EXPECT_EQ(FleetReading{}.existing().value(), 0) << "a router without workers";
  EXPECT_EQ((FleetReading{.replicas = {{}}, .silent = 2}).existing().value(), 3);
  EXPECT_FALSE((FleetReading{.silent = 1}).existing()) << "perhaps a router";
}

}  // namespace
}  // namespace octavo::fleet
