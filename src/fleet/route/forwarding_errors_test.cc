// Tests of the errors that clients receive when a worker fails.
#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

TEST_F(RouterTest, AStreamOfAReplicaWithoutMetricsThatGoesSilentEnds) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");
    kept.push_back(e);
  });
  a.has_metrics = false;
  route({a.url()}, {.blind_wait_ms = 100});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", R"({"stream": true})"));
  std::string all;
  auto piece = client.read();
  for (; piece && *piece; piece = client.read()) all += **piece;
  EXPECT_NE(all.find("\"error\""), std::string::npos);
  // On a slow machine, the worker may fail before its first event arrives. The response is then an error.
  EXPECT_FALSE(all.starts_with("data: 1") && piece) << "no proper end";
}

TEST_F(RouterTest, ErrorsHaveTheShapeOfTheProtocol) {
  Replica a("a", [](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");  // without finish(), the stream breaks
  });
  route({a.url()});
  const auto ask = [&](const char* path, std::string body) {
    http::Client client = connect();
    const auto head = client.open("POST", path, std::move(body));
    std::string all;
    for (auto piece = client.read(); piece && *piece; piece = client.read()) all += **piece;
    return all;
  };
  EXPECT_TRUE(ask("/v1/messages", R"({"model": "unknown"})").starts_with(R"({"type":"error","error":{)"));
  EXPECT_TRUE(ask("/v1/messages", "{}").contains("\n\nevent: error\ndata: {\"type\":\"error\","));
  EXPECT_TRUE(ask("/v1/responses", "{}").contains("\n\nevent: error\ndata: {\"type\":\"error\","));
  EXPECT_TRUE(ask("/v1/chat/completions", "{}").contains("\n\ndata: {\"error\":"));
}

TEST_F(RouterTest, ARetryAfterOfNoTimeIsNoReasonToGiveUp) {
  std::atomic<int> refusals = 0;
  Replica a("a", [&](auto e) {
    if (++refusals < 3) return e->respond({.status = 503, .headers = {{"Retry-After", "0"}}});
    e->respond({.body = "a"});
  });
  route({a.url()});
  EXPECT_EQ(post("{}").body, "a");
}

}  // namespace
}  // namespace octavo::fleet
