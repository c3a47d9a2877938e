#include "fleet/pick/pick_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/pick/old_metric_names.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PickMetrics, DecisionsNameTheEndpoint) {
  PickMetrics metrics;
  metrics.decided(
      {.target_model = "m", .endpoint = "10.0.0.1:8000", .prompt_tokens = 100, .known_tokens = 64});
  metrics.decided({.target_model = "m"});
  const std::string page = metrics.text({});
  EXPECT_THAT(page, HasSubstr("llm_d_epp_scheduler_attempts_total{status=\"success\",target_model_name=\"m\","
                              "endpoint_name=\"10.0.0.1\",port=\"8000\"} 1\n"));
  EXPECT_THAT(page,
              HasSubstr("{status=\"failure\",target_model_name=\"m\",endpoint_name=\"\",port=\"\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("llm_d_epp_prefix_indexer_hit_ratio_bucket{le=\"0.6\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("llm_d_epp_prefix_indexer_hit_ratio_bucket{le=\"0.7\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("llm_d_epp_prefix_indexer_hit_bytes_sum 256\n"));
}

TEST(PickMetrics, CountsAnswersThatAreSlowerThanTheirObjective) {
  PickMetrics metrics;
  PickedRequest request{.model = "m",
                        .target_model = "m",
                        .streamed = true,
                        .ttft_slo_seconds = 0.5,
                        .tpot_slo_seconds = 0.1,
                        .seconds = 2,
                        .first_byte_seconds = 0.4,
                        .output_tokens = 11};
  metrics.ended(request);
  const std::string slow =
      "llm_d_epp_request_slo_violation_total{model_name=\"m\",target_model_name=\"m\",type=";
  EXPECT_THAT(metrics.text({}), HasSubstr(slow + "\"tpot\"} 1\n")) << "1.6 s for ten tokens";
  EXPECT_THAT(metrics.text({}), Not(HasSubstr(slow + "\"ttft\"}")));
  request.first_byte_seconds = 0.6;
  metrics.ended(request);
  request.ttft_slo_seconds = request.tpot_slo_seconds = 0;
  metrics.ended(request);
  EXPECT_THAT(metrics.text({}), HasSubstr(slow + "\"ttft\"} 1\n"));
}

TEST(PickMetrics, RequestsRunUntilTheyEnd) {
  PickMetrics metrics;
  metrics.began("m");
  EXPECT_THAT(metrics.text({}), HasSubstr("llm_d_epp_request_running{model_name=\"m\"} 1\n"));
  metrics.ended({.model = "m", .target_model = "m", .status = 503, .request_bytes = 10, .counted = true});
  const std::string page = metrics.text({});
  EXPECT_THAT(page, HasSubstr("llm_d_epp_request_running{model_name=\"m\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("error_code=\"503\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("llm_d_epp_request_size_bytes_sum 10\n"));
}

TEST(PickMetrics, ModelsAboveTheLimitCountAsOne) {
  PickMetrics metrics;
  for (int i = 0; i < 1100; ++i)
    metrics.ended({.model = std::to_string(i), .target_model = std::to_string(i)});
  EXPECT_THAT(metrics.text({}),
              HasSubstr("llm_d_epp_request_total{model_name=\"other\",target_model_name=\"other\"} 100\n"));
}

TEST(PickMetrics, GaugesOfAPoolBearItsName) {
  EXPECT_THAT(PickMetrics().text({}, "pool"), HasSubstr("llm_d_epp_ready_endpoints{name=\"pool\"} 0\n"));
  EXPECT_THAT(PickMetrics().text({}), HasSubstr("llm_d_epp_ready_endpoints 0\n"));
}

TEST(PickMetrics, PluginsSayHowLongTheyTake) {
  PickMetrics metrics;
  metrics.plugin_times().took("Scorer", {"queue-scorer", "queue"}, 3000);
  EXPECT_THAT(
      metrics.text({}),
      HasSubstr(
          "llm_d_epp_plugin_duration_seconds_bucket{extension_point=\"Scorer\",plugin_type=\"queue-scorer\","
          "plugin_name=\"queue\",le=\"5e-06\"} 1\n"));
}

TEST(OldMetricNames, DashboardsReadBoth) {
  std::string page =
      "# HELP llm_d_epp_request_total Requests.\n# TYPE llm_d_epp_request_total counter\n"
      "llm_d_epp_request_total{model_name=\"llm_d_epp_request_total\"} 1\n"
      "# HELP other Of others.\n# TYPE other counter\nother 2\n";
  const std::string before = page;
  add_old_metric_names(page);
  EXPECT_EQ(page, before +
                      "# HELP inference_objective_request_total Requests.\n"
                      "# TYPE inference_objective_request_total counter\n"
                      "inference_objective_request_total{model_name=\"llm_d_epp_request_total\"} 1\n");
}

}  // namespace
}  // namespace octavo::fleet
