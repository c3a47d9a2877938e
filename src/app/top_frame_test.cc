#include "app/top_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace octavo {
namespace {

using testing::HasSubstr;

fleet::ServerLoad some_load() {
  return {.running = 7,
          .waiting = 2,
          .kv_usage = 0.75,
          .prompt_tokens = 500,
          .generation_tokens = 1000,
          .finished = 10,
          .prefix_queries = 200,
          .prefix_hits = 50,
          .sessions = 12,
          .pinned_sessions = 3,
          .first_token = {{0.1, 5}, {0.2, 10}, {std::numeric_limits<double>::infinity(), 10}}};
}

TEST(TopFrame, HasALineAServerAndOneOfAll) {
  const fleet::ServerLoad load = some_load();
  const std::string one = top_frame({{.name = "http://a:8000", .load = load}}, 2, 0);
  EXPECT_EQ(
      one,
      "SERVER          RUN  WAIT   KV%  HIT% SESS/pin  REQ/s  PROMPT/s     GEN/s  TTFT p50/p95 ITL p50/p95\n"
      "http://a:8000     7     2  75.0    25     12/3    5.0       250       500       100/190           "
      "-\n");
  const std::string fleet = top_frame({{.name = "http://a:8000", .load = load},
                                       {.name = "http://b:8000", .load = load},
                                       {.name = "c", .problem = "refused"}},
                                      2, 0);
  EXPECT_THAT(fleet, HasSubstr("\nc             refused\n"));
  EXPECT_THAT(fleet, HasSubstr("\nall              14     4  75.0    25     24/6   10.0       500      1000  "
                               "     100/190           -\n"));
  EXPECT_THAT(top_frame({{.name = std::string(60, 'x') + ":8000", .problem = "?"}}, 1, 0),
              HasSubstr("\n..xxx"));
}

TEST(TopFrame, ListsModels) {
  const std::string page =
      "# TYPE octavo:model_loaded gauge\n"
      "octavo:model_loaded{model_name=\"chat\"} 1\noctavo:model_loaded{model_name=\"embed\"} 0\n"
      "octavo:model_waiting{model_name=\"embed\"} 1\noctavo:model_weight_bytes{model_name=\"chat\"} "
      "2500000000\n"
      "octavo:model_kept_cache_bytes{model_name=\"chat\"} "
      "64000000\noctavo:model_loads_total{model_name=\"chat\"} 3\n"
      "octavo:model_last_use_seconds{model_name=\"chat\"} 1000\n";
  const std::vector<fleet::ModelState> models = fleet::read_model_states(page);
  const std::string frame = top_frame({{.name = "a", .load = some_load(), .models = models}}, 1, 1012);
  EXPECT_THAT(frame, testing::EndsWith("\n\n"
                                       "MODEL STATE      WEIGHTS  KV CACHE   LOADS  LAST USE\n"
                                       "chat  loaded     2.50 GB   64.0 MB       3      12 s\n"
                                       "embed waiting          -         -       0         -\n"));
  EXPECT_TRUE(fleet::read_model_states("vllm:num_requests_running{model_name=\"x\"} 1\n").empty());
}

}  // namespace
}  // namespace octavo
