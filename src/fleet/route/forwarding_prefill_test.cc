// Tests with separate prefill and decode workers.
#include <future>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

constexpr const char* kHandedOver = "octavo_route_prefills_total{outcome=\"handed_over\"} ";
constexpr const char* kFailed = "octavo_route_prefills_total{outcome=\"failed\"} ";

TEST_F(RouterTest, PrefillAndDecodeApart) {
  std::string prefill_request, id;
  Replica prefill("p", [&](auto e) {
    prefill_request = e->request().body;
    id = e->request().headers.find("X-Request-Id").value_or("");
    e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"});
  });
  Replica decode("d", [&](auto e) {
    const bool is_decode = e->request().body.find("kv_transfer_params") != std::string::npos;
    if (is_decode) {
      EXPECT_EQ(e->request().headers.find("X-Request-Id"), id);
    }
    e->respond({.body = e->request().body});
  });
  route_apart({prefill.url()}, {decode.url()});
  EXPECT_EQ(post(R"({"prompt": "a", "max_tokens": 9})").body,
            R"({"kv_transfer_params":{"remote_port":7},"prompt": "a", "max_tokens": 9})");
  EXPECT_NE(prefill_request.find(R"("max_tokens":1)"), std::string::npos) << prefill_request;
  EXPECT_NE(prefill_request.find(R"("do_remote_decode":true)"), std::string::npos) << prefill_request;
  // The router sends all other requests unchanged to decode workers.
  EXPECT_EQ(post(R"({"prompt": ["a", "b"]})").body, R"({"prompt": ["a", "b"]})");
  EXPECT_EQ(prefill.requests, 1);
  EXPECT_EQ(decode.requests, 2);
  EXPECT_NE(get("/metrics").body.find(std::string(kHandedOver) + "1\n"), std::string::npos);
  EXPECT_NE(get("/workers").body.find(R"("worker_type":"prefill")"), std::string::npos);
  EXPECT_NE(get("/workers").body.find(R"("prefill_count":1,"decode_count":1,"regular_count":0)"),
            std::string::npos);
}

TEST_F(RouterTest, TheClientGetsTheCachedTokensOfThePrefillWorker) {
  Replica prefill("p", [](auto e) {
    e->respond({.body = R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":5}},)"
                        R"("kv_transfer_params":{"remote_port":7}})"});
  });
  // The decode worker has fetched all blocks, so it reports the whole prompt as cached.
  constexpr std::string_view kUsage =
      R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":8}}})";
  constexpr std::string_view kRight =
      R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":5}}})";
  Replica decode("d", [&](auto e) {
    if (e->request().body.find("\"stream\"") == std::string::npos)
      return e->respond({.body = std::string(kUsage)});
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: {\"choices\":[]}\n\nda");
    e->write(fmt::format("ta: {}\n\n", kUsage));
    e->write("data: [DONE]\n\n");
    e->finish();
  });
  route_apart({prefill.url()}, {decode.url()});
  EXPECT_EQ(post(R"({"prompt": "a"})").body, kRight);
  EXPECT_EQ(post(R"({"prompt": "a", "stream": true})").body,
            fmt::format("data: {{\"choices\":[]}}\n\ndata: {}\n\ndata: [DONE]\n\n", kRight));
}

// Prefill workers in the decode worker's zone and in a different zone.
class NearnessTest : public RouterTest {
 protected:
  void route_in_zones(const Replica& near, const Replica& far, const Replica& decode) {
    route_apart({far.url()}, {decode.url()});
    place(far, "prefill", "b");
    place(near, "prefill", "a");
    place(decode, "decode", "a");
    wait([&] { return ready() == 3 && get("/workers").body.find("unknown") == std::string::npos; });
  }
  static void hand_over(const std::shared_ptr<http::Exchange>& e) {
    e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"});
  }

 private:
  void place(const Replica& replica, const char* type, const char* zone) {
    const std::string record = fmt::format(
        R"({{"url": "{}", "worker_type": "{}", "labels": {{"topology.kubernetes.io/zone": "{}"}}}})",
        replica.url(), type, zone);
    EXPECT_EQ(connect().post_json("/workers", record)->status, 202);
  }
};

TEST_F(NearnessTest, PromptsAreComputedNearTheDecodeWorker) {
  Replica near("near", hand_over), far("far", hand_over), decode("d");
  route_in_zones(near, far, decode);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(near.requests, 4);
  near.stop();
  EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(far.requests, 1) << "another zone is better than none";
}

TEST_F(NearnessTest, AFarWorkerComputesPromptsWhileTheNearOneIsPaused) {
  Replica near("near", [](auto e) { e->respond({.status = 429, .headers = {{"Retry-After", "30"}}}); });
  Replica far("far", hand_over), decode("d");
  route_in_zones(near, far, decode);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  EXPECT_EQ(near.requests, 1);
  EXPECT_EQ(far.requests, 4);
}

TEST_F(NearnessTest, NearWorkersOfAnotherModelDoNotCount) {
  Replica near("near", hand_over), far("wanted", hand_over), decode("wanted");
  route_in_zones(near, far, decode);
  EXPECT_EQ(post(R"({"prompt": "a", "model": "wanted"})").status, 200);
  EXPECT_EQ(far.requests, 1);
  EXPECT_EQ(near.requests, 0);
}

TEST_F(NearnessTest, AFarWorkerHelpsANearOneThatHasMuchMoreWork) {
  Keeper keeper;
  Replica near("near", std::ref(keeper)), far("far", hand_over), decode("d");
  route_in_zones(near, far, decode);
  std::vector<std::future<http::Response>> waiting;
  for (std::size_t i = 0; i < 2; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] { return post(R"({"prompt": "a"})"); }));
    wait([&] { return keeper.size() == i + 1; });
  }
  for (std::size_t i = 0; i < 2; ++i)
    waiting.push_back(std::async(std::launch::async, [&] { return post(R"({"prompt": "a"})"); }));
  wait([&] { return far.requests + static_cast<int>(keeper.size()) == 4; });
  EXPECT_GE(far.requests, 1);
  for (std::size_t i = 0; i < keeper.size(); ++i) hand_over(keeper.at(i));
  for (auto& answer : waiting) EXPECT_EQ(answer.get().status, 200);
}

TEST_F(RouterTest, WithoutAPrefillRequestTheDecoderDoesAll) {
  Replica refusing("r", [](auto e) { e->respond({.status = 400}); });
  Replica mute("m", [](auto e) {
    e->start_stream({.content_type = "application/json"});
    e->write("{");  // without finish(), the stream breaks
  });
  Replica silent("s", [](auto e) { e->respond({.body = R"({"choices": []})"}); });
  Replica decode("d", [](auto e) { e->respond({.body = e->request().body}); });
  RouterOptions options{.pd = {.enabled = true,
                               .prefill_urls = {refusing.url(), mute.url(), silent.url()},
                               .decode_urls = {decode.url()}},
                        .policy = "round_robin"};
  start(options);
  const std::string body = R"({"prompt": "a", "stream": true})";
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post(body).body, body);
  EXPECT_GE(refusing.requests * mute.requests * silent.requests, 1);
  for (Replica* stopped : {&refusing, &mute, &silent}) stopped->stop();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post(body).body, body);
  EXPECT_NE(get("/metrics").body.find(std::string(kFailed) + "12\n"), std::string::npos);
  EXPECT_EQ(decode.requests, 12);
}

TEST_F(RouterTest, ABusyPrefillWorkerIsPassedOverForAnother) {
  Replica busy("busy", [](auto e) { e->respond({.status = 429, .headers = {{"Retry-After", "30"}}}); });
  Replica free("free", [](auto e) { e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"}); });
  Replica decode("d", [](auto e) { e->respond({.body = e->request().body}); });
  route_apart({busy.url(), free.url()}, {decode.url()});
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(post(R"({"prompt": "a"})").body.contains("remote_port"));
  EXPECT_EQ(busy.requests, 1);
  free.stop();
  EXPECT_FALSE(post(R"({"prompt": "a"})").body.contains("remote_port")) << "the decode worker does all";
}

TEST_F(RouterTest, PromptsThatNoPrefillWorkerTakesAreCounted) {
  Replica busy("busy", [](auto e) { e->respond({.status = 503, .headers = {{"Retry-After", "30"}}}); });
  Replica decode("d");
  route_apart({busy.url()}, {decode.url()});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  EXPECT_TRUE(get("/metrics").body.contains("octavo_route_prefills_total{outcome=\"busy\"} 3\n"));
}

TEST_F(RouterTest, ADecodeWorkerComputesTheLittleThatItLacks) {
  Replica prefill("p", [](auto e) { e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"}); });
  Replica decode("d", [](auto e) { e->respond({.body = e->request().body}); });
  start({.pd = {.enabled = true,
                .prefill_urls = {prefill.url()},
                .decode_urls = {decode.url()},
                .max_local_length = 100}});
  EXPECT_EQ(post(R"({"prompt": "short"})").body, R"({"prompt": "short"})");
  EXPECT_EQ(prefill.requests, 0);
  EXPECT_TRUE(get("/metrics").body.contains("octavo_route_prefills_total{outcome=\"local\"} 1\n"));
  EXPECT_TRUE(post(R"({"prompt": ")" + std::string(1000, 'a') + R"("})").body.contains("remote_port"));
  EXPECT_EQ(prefill.requests, 1);
}

TEST_F(RouterTest, LittlePromptsGoToEachDecodeWorkerInTurn) {
  Replica prefill("p"), d("d"), e("e");
  start({.pd = {.enabled = true,
                .prefill_urls = {prefill.url()},
                .decode_urls = {d.url(), e.url()},
                .max_local_length = 100}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post(R"({"prompt": "short"})").status, 200);
  EXPECT_EQ(d.requests, 2);
  EXPECT_EQ(e.requests, 2);
  EXPECT_EQ(prefill.requests, 0);
}

TEST_F(RouterTest, NoDecodeWorkerComputesAPromptThatPrefillWorkersMust) {
  std::atomic<int> status = 503;
  Replica prefill("p", [&](auto e) {
    e->respond({.status = status, .headers = {{"Retry-After", "7"}}, .body = "mine"});
  });
  Replica decode("d");
  start({.pd = {.enabled = true,
                .prefill_urls = {prefill.url()},
                .decode_urls = {decode.url()},
                .enforced = true}});
  const http::Response busy = post(R"({"prompt": "a"})");
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.headers.find("Retry-After"), "7");
  status = 400;
  EXPECT_EQ(post(R"({"prompt": "a"})").body, "mine") << "what the client did wrong";
  prefill.stop();
  EXPECT_EQ(post(R"({"prompt": "a"})").status, 503);
  EXPECT_EQ(decode.requests, 0);
  EXPECT_TRUE(get("/metrics").body.contains("octavo_route_prefills_total{outcome=\"refused\"} 3\n"));
}

TEST_F(RouterTest, ARouterIsReadyWithTheWorkersThatAnAnswerNeeds) {
  Replica replica("a");
  const std::string missing = "http://127.0.0.1:1";
  const auto status_with = [&](std::string prefill, std::string decode, bool enforced) {
    RouterOptions options{.pd = {.enabled = true,
                                 .prefill_urls = {std::move(prefill)},
                                 .decode_urls = {std::move(decode)},
                                 .enforced = enforced},
                          .policy = "random"};
    router_ = *Router::start(options);
    wait([&] { return get("/readiness").body.contains(R"("healthy_workers":1)"); });
    EXPECT_EQ(get("/health").status, get("/readiness").status);
    return get("/readiness").status;
  };
  EXPECT_EQ(status_with(replica.url(), missing, false), 503);
  EXPECT_EQ(status_with(missing, replica.url(), false), 200);
  EXPECT_EQ(status_with(missing, replica.url(), true), 503);
}

TEST_F(RouterTest, ARefusalOfAPrefillWorkerIsNotTheDecodeWorkersAnswer) {
  std::atomic<int> requested = 0;
  const auto refuse_first = [&](auto e) {
    if (requested++ == 0) return e->respond({.status = 503, .body = "full"});
    e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"});
  };
  Replica p("p", refuse_first), q("q", refuse_first), decode("d");
  start({.pd = {.enabled = true,
                .prefill_urls = {p.url(), q.url()},
                .decode_urls = {decode.url()},
                .enforced = true}});
  decode.stop();
  const http::Response answer = post(R"({"prompt": "a"})");
  EXPECT_EQ(requested, 2);
  EXPECT_NE(answer.body, "full") << answer.status;
  EXPECT_GE(answer.status, 500);
}

TEST_F(RouterTest, AgentsProtocolsAreComputedApartToo) {
  std::string prefill_request;
  Replica prefill("p", [&](auto e) {
    prefill_request = e->request().body;
    e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"});
  });
  Replica decode("d", [](auto e) { e->respond({.body = e->request().body}); });
  route_apart({prefill.url()}, {decode.url()});
  const auto split = [&](const char* path, const char* body) {
    return connect().post_json(path, body)->body.contains("remote_port");
  };
  EXPECT_TRUE(split("/v1/messages", R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 9})"));
  EXPECT_TRUE(prefill_request.contains("\"max_tokens\":1")) << prefill_request;
  EXPECT_TRUE(split("/v1/responses", R"({"input": "a", "store": true})"));
  EXPECT_TRUE(prefill_request.contains("\"max_output_tokens\":1")) << prefill_request;
  EXPECT_TRUE(prefill_request.contains("\"store\":false")) << prefill_request;
  EXPECT_FALSE(split("/v1/responses", R"({"input": "a", "previous_response_id": "resp_1"})"));
}

TEST_F(RouterTest, APrefillWorkerThatNeverAnswersIsNotWaitedFor) {
  Keeper keeper;
  Replica mute("mute", std::ref(keeper));
  mute.waiting = 0;
  Replica decode("d", [](auto e) { e->respond({.body = "decoded"}); });
  route_apart({mute.url()}, {decode.url()});
  EXPECT_EQ(post(R"({"prompt": "a"})").body, "decoded") << "its metrics say that it has nothing to do";
  mute.waiting = 3;
  router_.reset();
  start({.pd = {.enabled = true,
                .prefill_urls = {mute.url()},
                .decode_urls = {decode.url()},
                .prefill_timeout_ms = 50}});
  EXPECT_EQ(post(R"({"prompt": "a"})").body, "decoded");
}

TEST_F(RouterTest, APrefillWorkerThatNeverAnswersIsNotAskedForEver) {
  Keeper keeper;
  Replica mute("mute", std::ref(keeper)), decode("d");
  start({.pd = {.enabled = true,
                .prefill_urls = {mute.url()},
                .decode_urls = {decode.url()},
                .prefill_timeout_ms = 200},
         .health = {.breaker = {.failure_threshold = 2}}});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
  wait([&] { return mute.requests >= 2; });  // a request may reach the worker after its timeout
  EXPECT_EQ(mute.requests, 2);
}

// The prefill worker receives each request and then breaks the connection, or fails with a 500.
TEST_F(RouterTest, APrefillWorkerThatFailsEachRequestIsNotAskedForEver) {
  Replica decode("d");
  Replica breaks("breaks", [](const auto&) {}), fails("fails", [](auto e) { e->respond({.status = 500}); });
  for (Replica* prefill : {&breaks, &fails}) {
    start({.pd = {.enabled = true, .prefill_urls = {prefill->url()}, .decode_urls = {decode.url()}},
           .health = {.breaker = {.failure_threshold = 2}}});
    for (int i = 0; i < 6; ++i) EXPECT_EQ(post(R"({"prompt": "a"})").status, 200);
    EXPECT_EQ(prefill->requests, 2);
  }
}

}  // namespace
}  // namespace octavo::fleet
