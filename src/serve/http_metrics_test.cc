#include "serve/http_metrics.h"

#include <gmock/gmock.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpMetrics, CountByRoute) {
  HttpMetrics metrics;
  metrics.count("/v1/completions", {.method = "POST",
                                    .path = "",
                                    .status = 200,
                                    .request_bytes = 100,
                                    .response_bytes = 7,
                                    .seconds = 0.3});
  metrics.count("/v1/completions",
                {.method = "POST", .path = "", .status = 404, .request_bytes = 50, .seconds = 2});
  metrics.count("none", {.method = "BREW\"", .path = "", .status = 404});
  const std::string text = metrics.text();
  EXPECT_THAT(text,
              HasSubstr("# TYPE http_requests_total counter\n"
                        "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"} 1\n"
                        "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"4xx\"} 1\n"
                        "http_requests_total{handler=\"none\",method=\"other\",status=\"4xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("http_request_size_bytes_count{handler=\"/v1/completions\"} 2\n"
                              "http_request_size_bytes_sum{handler=\"/v1/completions\"} 150\n"));
  EXPECT_THAT(text, HasSubstr("http_response_size_bytes_sum{handler=\"/v1/completions\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("http_request_duration_highr_seconds_bucket{le=\"0.5\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("http_request_duration_highr_seconds_count 3\n"));
  EXPECT_THAT(text,
              HasSubstr("http_request_duration_seconds_bucket{handler=\"/v1/completions\",method=\"POST\","
                        "le=\"0.5\"} 1\n"));
}

class HttpMetricsTest : public ServeTest {};

TEST_F(HttpMetricsTest, OfTheServer) {
  serve_text("hello");
  EXPECT_EQ(post("/v1/completions", kCompletion + "}").status, 200);
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"stream":true})").status, 200);
  EXPECT_EQ(post("/v1/completions", "{}").status, 400);
  EXPECT_EQ(client().get("/v1/models/demo").value().status, 200);
  EXPECT_EQ(client().get("/nowhere/1").value().status, 404);
  EXPECT_EQ(client().get("/health").value().status, 200);
  const std::string text = client().get("/metrics").value().body;
  EXPECT_THAT(
      text, HasSubstr("http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"} 2\n"));
  EXPECT_THAT(
      text, HasSubstr("http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"4xx\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("http_requests_total{handler=\"/v1/models/{id}\",method=\"GET\",status=\"2xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("http_requests_total{handler=\"none\",method=\"GET\",status=\"4xx\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("http_request_duration_seconds_count{handler=\"/v1/completions\",method=\"POST\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("handler=\"/health\"")));
}

}  // namespace
}  // namespace octavo
