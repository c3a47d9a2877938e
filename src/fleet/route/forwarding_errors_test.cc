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

// A worker may restart with another model between two reads of its models.
TEST_F(RouterTest, AModelThatAReplicaNoLongerServesIsFoundAtAnother) {
  const auto lacking = [](auto e) {
    e->respond(
        {.status = 404, .body = R"({"error":{"message":"The model `m` does not exist.","param":null}})"});
  };
  std::atomic<bool> has_b = true;
  Replica a("a", lacking);
  Replica b("b", [&](auto e) { has_b ? e->respond({.body = "b"}) : lacking(e); });
  route({a.url(), b.url()});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post(R"({"model": "m"})").body, "b");
  EXPECT_GT(a.requests, 0);
  has_b = false;
  a.requests = b.requests = 0;
  const http::Response nowhere = post(R"({"model": "m"})");
  EXPECT_EQ(nowhere.status, 404);
  EXPECT_TRUE(nowhere.body.contains("`m` does not exist")) << nowhere.body;
  EXPECT_EQ(a.requests, 1);
  EXPECT_EQ(b.requests, 1);
}

TEST_F(RouterTest, A404ThatDoesNotNameTheModelIsForTheClient) {
  Replica a("a", [](auto e) { e->respond({.status = 404, .body = R"({"detail":"Not Found"})"}); });
  Replica b("b", [](auto e) { e->respond({.status = 404, .body = R"({"model":"m"})"}); });
  route({a.url(), b.url()});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post(R"({"model": "m"})").status, 404);
  EXPECT_EQ(a.requests + b.requests, 4);
}

TEST_F(RouterTest, ModelsThatCouldNotBeReadAreReadAgainSoon) {
  Replica a("a");
  a.models_failures = 3;
  route({a.url()}, {.health = {.interval_ms = 50}});  // waits for the models
  EXPECT_LT(a.probes, 100) << "the models were read at the slow interval of successful reads";
}

}  // namespace
}  // namespace octavo::fleet
