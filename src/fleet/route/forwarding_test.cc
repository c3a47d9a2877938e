// Tests of requests whose workers fail, refuse, hang or are slow.
#include <future>
#include <mutex>
#include <semaphore>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

TEST_F(RouterTest, TriesAnotherReplicaWhenOneFails) {
  Replica broken("broken", [](auto e) { e->respond({.status = 500}); });
  Replica mute("mute", [](auto e) {
    e->start_stream({.content_type = "application/json"});
    e->write("{\"half\":");  // without finish(), the response breaks
  });
  Replica well("well");
  route({broken.url(), mute.url(), well.url()});
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(post("{}").body.starts_with("well")) << i;
  EXPECT_TRUE(get("/metrics").body.contains("\nsmg_router_ttft_seconds_count 6\n"))
      << "only the answers that clients got";
}

TEST_F(RouterTest, ADeadReplicaCostsNoRequest) {
  Replica a("a"), b("b");
  route({a.url(), b.url()});
  a.stop();
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(post("{}").body.starts_with("b"));
  EXPECT_EQ(b.requests, 30);
  EXPECT_NE(get("/metrics").body.find("smg_worker_cb_state{worker=\"" + a.url() + "\"} 1"), std::string::npos)
      << "its circuit breaker is open";
  EXPECT_EQ(ready(), 1U);
}

TEST_F(RouterTest, SaysWhenNobodyCanAnswer) {
  Replica a("a", [](auto e) { e->respond({.status = 503, .body = "busy"}); });
  route({a.url()}, {.retry = {.attempts_max = 3}});
  const http::Response last = post("{}");
  EXPECT_EQ(last.status, 503);
  EXPECT_EQ(last.body, "busy") << "the last answer goes to the client";
  EXPECT_EQ(a.requests, 3);
  a.stop();
  EXPECT_EQ(post("{}").status, 502);
}

TEST_F(RouterTest, WhatTheClientDidWrongIsNotRetried) {
  Replica a("a", [](auto e) { e->respond({.status = 400, .body = "no"}); });
  route({a.url()});
  EXPECT_EQ(post("{}").status, 400);
  EXPECT_EQ(a.requests, 1);
}

TEST_F(RouterTest, StreamsPieceByPiece) {
  std::promise<std::shared_ptr<http::Exchange>> begun;
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");
    begun.set_value(e);
  });
  route({a.url()});
  http::Client client = connect();
  EXPECT_EQ(client.open("POST", "/v1/completions", "{}")->content_type, "text/event-stream");
  EXPECT_EQ(**client.read(), "data: 1\n\n") << "before the second one is there";
  const auto stream = begun.get_future().get();
  stream->write("data: 2\n\n");
  stream->finish();
  EXPECT_EQ(**client.read(), "data: 2\n\n");
  EXPECT_FALSE(client.read()->has_value());
}

TEST_F(RouterTest, TheUsageOfAnAnswerIsComparedOnce) {
  std::counting_semaphore<> seen(0);  // events that the client has received
  std::vector<std::jthread> writers;  // send the events, so that the worker's event loop stays free
  Replica a("a", [&](auto e) {
    writers.emplace_back([e, &seen] {
      e->start_stream({.content_type = "text/event-stream"});
      const std::string event = "data: {\"usage\": {\"prompt_tokens\": 4}}\n\n";
      for (int i = 0; i < 3; ++i) {  // as with vLLM's continuous_usage_stats
        e->write(event);
        if (!seen.try_acquire_for(std::chrono::minutes(1))) break;
      }
      e->finish();
    });
  });
  route({a.url()});
  const auto mismatches = [&](int n) {
    return get("/metrics")
        .body.contains(fmt::format("\noctavo_route_prompt_length_mismatches_total {}\n", n));
  };
  const auto stream = [&](std::string_view body) {
    http::Client client = connect();
    ASSERT_TRUE(client.open("POST", "/v1/completions", std::string(body)));
    std::string text;
    int events = 0;
    std::size_t at = 0;
    for (Result<std::optional<std::string>> piece; (piece = client.read()) && *piece;) {
      text += **piece;
      for (; (at = text.find("data:", at)) != std::string::npos; ++at, ++events) seen.release();
      // the last bytes may be the beginning of "data:"
      at = text.size() - std::min<std::size_t>(text.size(), 4);
    }
    EXPECT_EQ(events, 3);
  };
  stream(R"({"prompt": [1, 2, 3], "stream": true})");
  EXPECT_TRUE(mismatches(1));
  stream(R"({"prompt": [1, 2, 3], "stream": true, "truncate_prompt_tokens": 2})");
  EXPECT_TRUE(mismatches(1)) << "it may have been cut";
}

TEST_F(RouterTest, AStreamThatBreaksIsNotTakenForComplete) {
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");  // without finish(), the stream breaks
  });
  route({a.url()});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", "{}"));
  std::string seen;
  Result<std::optional<std::string>> piece;
  while ((piece = client.read()) && *piece) seen += **piece;
  EXPECT_FALSE(piece) << "no proper end";
  EXPECT_NE(seen.find("\"error\""), std::string::npos) << seen;
  EXPECT_EQ(a.requests, 1) << "not sent again: the client has seen bytes";
}

TEST_F(RouterTest, AClientThatGoesAwayEndsTheRequestAtTheReplica) {
  std::atomic<bool> ended = false;
  Replica a("a", [&](auto e) { e->on_close([&, e](http::CloseReason) { ended = true; }); });
  route({a.url()});
  {
    http::Client client = connect();
    ASSERT_TRUE(client.send_raw("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"));
    wait([&] { return a.requests == 1; });
  }
  wait([&] { return ended.load(); });
}

http::Response busy(int status, const std::string& retry_after) {
  return {.status = status, .headers = {{"Retry-After", retry_after}}, .body = "busy"};
}

class BreakerTest : public RouterTest {
 protected:
  // `state` is a value of the metric smg_worker_cb_state.
  bool breaker_is(const Replica& replica, int state) {
    return get("/metrics")
        .body.contains(fmt::format("smg_worker_cb_state{{worker=\"{}\"}} {}\n", replica.url(), state));
  }
  // Responds with `wrong` if the body contains POISON.
  static Replica::Behaviour unless_poisoned(Replica::Behaviour wrong) {
    return [wrong](std::shared_ptr<http::Exchange> e) {
      e->request().body.contains("POISON") ? wrong(std::move(e)) : e->respond({.body = "fine"});
    };
  }
};

TEST_F(BreakerTest, ARequestsOwnDeadlineOpensNone) {
  const auto late = unless_poisoned([](auto e) {
    e->respond(
        {.status = 503,
         .headers = {{"Retry-After", "1"}},
         .body = R"({"error":{"message":"timeout: its 0.01 s are over","param":"timeout","code":503}})"});
  });
  Replica a("a", late), b("b", late);
  route({a.url(), b.url()});
  for (int i = 0; i < 30; ++i) EXPECT_EQ(post(R"({"timeout": 0.01, "prompt": "POISON"})").status, 503);
  EXPECT_EQ(a.requests + b.requests, 30) << "no other replica can do better";
  EXPECT_TRUE(breaker_is(a, 0) && breaker_is(b, 0));
  EXPECT_EQ(post("{}").body, "fine");
}

TEST_F(BreakerTest, ARequestThatFailsEverywhereSpeaksAgainstItself) {
  const Replica::Behaviour wrongs[] = {[](auto e) { e->respond({.status = 500}); },
                                       [](auto e) {
                                         e->start_stream({.content_type = "application/json"});
                                         e->write("{");  // without finish(), the response breaks
                                       }};
  for (const auto& wrong : wrongs)
    for (const int replicas : {1, 2}) {
      Replica a("a", unless_poisoned(wrong)), b("b", unless_poisoned(wrong));
      std::vector<std::string> urls{a.url(), b.url()};
      urls.resize(static_cast<std::size_t>(replicas));
      route(urls);
      for (int i = 0; i < 20; ++i) EXPECT_GE(post(R"({"prompt": "POISON"})").status, 500);
      EXPECT_TRUE(breaker_is(a, 0));
      EXPECT_EQ(ready(), urls.size());
      EXPECT_EQ(post("{}").body, "fine");
      router_.reset();
    }
}

TEST_F(BreakerTest, AReplicaThatFailsWhatOthersAnswerIsLeftOut) {
  Replica broken("broken", [](auto e) { e->respond({.status = 500}); }), well("well");
  route({broken.url(), well.url()}, {.health = {.breaker = {.failure_threshold = 3}}});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(post("{}").status, 200);
  EXPECT_TRUE(breaker_is(broken, 1));
  EXPECT_TRUE(breaker_is(well, 0));
  EXPECT_EQ(broken.requests, 3);
}

TEST_F(BreakerTest, WhenAllAreOpenTheBestIsTried) {
  Replica a("a");
  route({a.url()}, {.retry = {.attempts_max = 1}, .health = {.breaker = {.failure_threshold = 1}}});
  a.stop();
  EXPECT_EQ(post("{}").status, 502);
  EXPECT_TRUE(breaker_is(a, 1));
  EXPECT_EQ(get("/health").status, 200) << "requests are sent all the same";
  a.start();
  EXPECT_EQ(post("{}").status, 200);
}

TEST_F(BreakerTest, AReplicaThatIsBusyIsNotBroken) {
  std::atomic<bool> is_busy = true;
  Replica a("a", [&](auto e) { is_busy ? e->respond(busy(503, "1")) : e->respond({.body = "a"}); });
  route({a.url()});
  for (int i = 0; i < 30; ++i) {
    const http::Response refused = post("{}");
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.headers.find("Retry-After"), "1");
  }
  EXPECT_EQ(a.requests, 30) << "it has said when";
  EXPECT_TRUE(breaker_is(a, 0));
  is_busy = false;
  EXPECT_EQ(post("{}").body, "a") << "at once";
}

TEST_F(RouterTest, ABusyReplicaIsPassedOverForAsLongAsItSays) {
  Replica a("a", [](auto e) { e->respond(busy(429, "30")); }), b("b");
  route({a.url(), b.url()});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(post("{}").status, 200);
  EXPECT_EQ(a.requests, 1);
}

TEST_F(RouterTest, WhenAllAreBusyEachClientHearsItAtOnce) {
  Replica a("a", [](auto e) { e->respond(busy(429, "30")); }),
      b("b", [](auto e) { e->respond(busy(503, "17")); });
  route({a.url(), b.url()});
  for (int i = 0; i < 10; ++i) {
    const http::Response refused = post("{}");
    EXPECT_TRUE(refused.status == 429 || refused.status == 503);
    EXPECT_TRUE(refused.headers.find("Retry-After"));
  }
  EXPECT_EQ(a.requests + b.requests, 11) << "the second replica is asked once more, the others once";
}

TEST_F(RouterTest, RetriesAreAShareOfTheRequests) {
  const auto fails = [](auto e) { e->respond({.status = 500}); };
  Replica a("a", fails), b("b", fails);
  route({a.url(), b.url()});
  constexpr int kRequests = 200;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kRequests; ++i) EXPECT_EQ(post("{}").status, 500);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  EXPECT_LE(a.requests + b.requests, 1.2 * kRequests + 10 * (seconds + 1));
}

TEST_F(RouterTest, AnswersThatAreLostAreTriedAgainOnceAndThenFromTheBudget) {
  const auto breaks = [](auto e) {
    e->start_stream({.content_type = "application/json"});
    e->write("{");  // without finish(), the response breaks
  };
  Replica a("a", breaks), b("b", breaks), c("c", breaks);
  route({a.url(), b.url(), c.url()});
  constexpr int kRequests = 200;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kRequests; ++i) EXPECT_GE(post("{}").status, 502);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  const int sent = a.requests + b.requests + c.requests;
  EXPECT_GE(sent, 2 * kRequests) << "no request is lost with one replica";
  EXPECT_LE(sent, 2.2 * kRequests + 10 * (seconds + 1));
}

constexpr const char* kPrompt = R"({"prompt": "what is asked"})";

TEST_F(RouterTest, WhatARestartedReplicaHadGoesToAnother) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b");
  route({a.url(), b.url()});
  auto answer = std::async(std::launch::async, [&] {
    while (a.requests == 0) post(kPrompt);
    return a.requests.load();
  });
  wait([&] { return a.requests == 1; });
  const int before = a.pages;
  wait([&] { return a.pages >= before + 2; });
  a.started_s = 20;  // only the metrics show the restart, because connections stay open
  EXPECT_EQ(answer.get(), 1);
  EXPECT_GE(b.requests, 1);
  wait([&] { return keeper.closed == 1; });
}

TEST_F(RouterTest, AStreamThatItsReplicaHasForgottenEnds) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");
    kept.push_back(e);
  });
  a.waiting = 0;
  route({a.url()});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", "{}"));
  EXPECT_EQ(**client.read(), "data: 1\n\n");
  EXPECT_NE((**client.read()).find("\"error\""), std::string::npos);
  EXPECT_FALSE(client.read()) << "no proper end";
}

// While the server runs a tool, its engine is idle.
TEST_F(RouterTest, ARequestWhoseToolsTheServerRunsIsNotForgotten) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  std::mutex mutex;
  const auto keep = [&](auto e) {
    const std::lock_guard lock(mutex);
    kept.push_back(e);
    if (e->request().body.find("stream") == std::string::npos) return;
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");
  };
  Replica a("a", keep), b("b", keep);
  a.waiting = b.waiting = 0;
  route({a.url(), b.url()});
  const std::string tools = R"("input": "x", "tools": [{"type": "mcp", "server_label": "s"}])";
  http::Client streamed = connect();
  ASSERT_TRUE(streamed.open("POST", "/v1/responses", R"({"stream": true, )" + tools + "}"));
  auto whole = std::async(std::launch::async, [&] {
    return connect().post_json("/v1/responses", "{" + tools + "}").value().body;
  });
  EXPECT_EQ(**streamed.read(), "data: 1\n\n");
  wait([&] { return a.requests + b.requests == 2; });
  const int before_a = a.pages, before_b = b.pages;
  wait([&] { return a.pages > before_a + 40 && b.pages > before_b + 40; });
  EXPECT_EQ(a.requests + b.requests, 2) << "no tool runs twice";
  const std::lock_guard lock(mutex);
  for (const auto& exchange : kept) {
    if (exchange->request().body.find("stream") == std::string::npos) {
      exchange->respond({.body = "whole"});
    } else {
      exchange->write("data: 2\n\n");
      exchange->finish();
    }
  }
  EXPECT_EQ(**streamed.read(), "data: 2\n\n");
  EXPECT_FALSE((*streamed.read()).has_value()) << "its proper end";
  EXPECT_EQ(whole.get(), "whole");
}

TEST(RouterOptions, AFrozenReplicaIsKnownWithinFifteenSeconds) {
  const RouterOptions options;
  EXPECT_LE(options.health.interval_ms + options.health.probes.failure_threshold *
                                             (options.health.timeout_ms + options.health.startup_interval_ms),
            15'000);
  EXPECT_GE(options.health.probes.failure_threshold * options.health.timeout_ms, 9'000)
      << "it may only be busy";
}

TEST_F(RouterTest, WhatAnUnhealthyReplicaHasGoesToAnother) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b");
  route({a.url(), b.url()}, {.health = {.interval_ms = 20}});
  std::vector<std::future<http::Response>> answers;
  while (a.requests == 0) {
    answers.push_back(std::async(std::launch::async, [&] { return post(kPrompt); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  a.well = false;
  for (auto& answer : answers) EXPECT_EQ(answer.get().body.substr(0, 1), "b");
  wait([&] { return keeper.closed == a.requests; });
}

TEST_F(RouterTest, AStreamOfAReplicaThatBecomesUnhealthyEndsWithAnError) {
  std::shared_ptr<http::Exchange> kept;
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");
    kept = e;
  });
  route({a.url()}, {.health = {.interval_ms = 20}});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", "{}"));
  EXPECT_EQ(**client.read(), "data: 1\n\n");
  a.well = false;
  EXPECT_NE((**client.read()).find("\"error\""), std::string::npos);
  EXPECT_FALSE(client.read()) << "no proper end";
}

TEST_F(RouterTest, ARequestThatItsReplicaHasForgottenGoesToAnother) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b");
  a.waiting = 0;
  route({a.url(), b.url()});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(post(kPrompt).body.substr(0, 1), "b");
  EXPECT_GE(a.requests, 1);
}

TEST_F(RouterTest, ARequestThatAReplicaWithoutMetricsHasForgottenGoesToAnother) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b");
  a.has_metrics = false;
  route({a.url(), b.url()}, {.blind_wait_ms = 1});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(post(R"({"prompt": "a", "max_tokens": 1})").body.substr(0, 1), "b");
  EXPECT_GE(a.requests, 1);
}

TEST_F(RouterTest, AStreamThatBreaksBeforeItsFirstByteIsTriedAgain) {
  // Without finish(), the stream breaks.
  Replica a("a", [](auto e) { e->start_stream({.content_type = "text/event-stream"}); });
  Replica b("b");
  route({a.url(), b.url()});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post("{}").body.substr(0, 1), "b");
  EXPECT_GE(a.requests, 1);
}

TEST_F(RouterTest, ClientsDeadlinesHoldForAllAttemptsTogether) {
  std::vector<std::string> timeouts;
  Replica a("a", [&](auto e) {
    timeouts.emplace_back(e->request().headers.find("X-Request-Timeout").value_or("none"));
    // leaves less time for the second attempt
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    e->respond({.status = 500});
  });
  route({a.url()}, {.retry = {.attempts_max = 2}});
  EXPECT_EQ(post(R"({"timeout": 50})").status, 500);
  ASSERT_EQ(timeouts.size(), 2U);
  EXPECT_EQ(timeouts[0], "none") << "the body says it";
  EXPECT_LE(std::stod(timeouts[1]), 49.98);
  EXPECT_GT(std::stod(timeouts[1]), 0);
}

TEST_F(RouterTest, ARequestEndsAtTheRoutersOwnLimit) {
  Keeper keeper;
  Replica a("a", std::ref(keeper));
  route({a.url()}, {.request_timeout_ms = 50});
  EXPECT_EQ(post("{}").status, 504);
}

TEST_F(RouterTest, LinesOfJsonComeAsTheyAreWritten) {
  std::promise<std::shared_ptr<http::Exchange>> begun;
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "application/x-ndjson"});
    e->write("{\"i\":1}\n");
    begun.set_value(e);
  });
  route({a.url()});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/api/generate", "{}"));
  EXPECT_EQ(**client.read(), "{\"i\":1}\n") << "before the answer's end";
  begun.get_future().get()->finish();
}

}  // namespace
}  // namespace octavo::fleet
