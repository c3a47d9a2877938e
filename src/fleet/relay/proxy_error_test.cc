#include "fleet/relay/proxy_error.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(ProxyError, HasTheShapeOfTheProtocol) {
  EXPECT_EQ(proxy_error("/v1/messages", 404, "no").body,
            R"({"type":"error","error":{"type":"not_found_error","message":"no"}})");
  EXPECT_EQ(proxy_error("/v1/messages", invalid("a", "b").error()).status, 400);
  for (const char* path : {"/v1/chat/completions", "/v1/responses", "/generate", "/unknown"})
    EXPECT_EQ(proxy_error(path, 404, "no", "model").body,
              R"({"error":{"message":"no","type":"NotFoundError","param":"model","code":404},)"
              R"("detail":"Not Found"})")
        << path;
}

TEST(ProxyError, EndsStreamsWithAnEventOfTheProtocol) {
  EXPECT_EQ(
      proxy_error_event("/v1/messages", 502, "no"),
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no\"}}\n\n");
  EXPECT_TRUE(proxy_error_event("/v1/responses", 502, "no")
                  .starts_with("event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"no\","));
  EXPECT_TRUE(proxy_error_event("/v1/completions", 502, "no").starts_with("data: {\"error\":"));
}

}  // namespace
}  // namespace octavo::fleet
