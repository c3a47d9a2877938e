#include "fleet/proxy/router.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "http/client.h"
#include "http/sse.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// A replica that answers with its name, or as a test tells it to.
class Replica {
 public:
  using Behaviour = std::function<void(std::shared_ptr<http::Exchange>)>;

  explicit Replica(std::string name, Behaviour behaviour = {})
      : name_(std::move(name)), behaviour_(std::move(behaviour)) {
    start(0);
  }
  void start(std::uint16_t port) {
    server_ = *http::Server::start({.port = port},
                                   [this](std::shared_ptr<http::Exchange> e) { handle(std::move(e)); });
    port_ = server_->port();
  }
  void stop() { server_.reset(); }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::atomic<int> requests = 0;
  std::atomic<int> engines = 1;  // that its metrics tell apart

 private:
  void handle(std::shared_ptr<http::Exchange> e) {
    const std::string& path = e->request().path;
    if (path == "/health") return e->respond({});
    if (path == "/metrics") {
      std::string page = "vllm:num_requests_waiting 3\n";
      for (int i = 0; i < engines; ++i) page += fmt::format("vllm:num_requests_running{{engine=\"{}\"}} 1\n", i);
      return e->respond({.content_type = "text/plain", .body = std::move(page)});
    }
    if (path == "/v1/models")
      return e->respond({.body = R"({"data": [{"id": "m"}, {"id": ")" + name_ + R"(", "parent": "m"}]})"});
    ++requests;
    if (behaviour_) return behaviour_(std::move(e));
    e->respond(
        {.content_type = "text/plain",
         .body = name_ + e->request().method + e->request().path + e->request().query + e->request().body});
  }

  std::string name_;
  Behaviour behaviour_;
  std::uint16_t port_ = 0;
  std::unique_ptr<http::Server> server_;
};

class RouterTest : public testing::Test {
 protected:
  void route(std::vector<std::string> urls, RouterOptions options = {}) {
    options.worker_urls = std::move(urls);
    start(std::move(options));
  }
  void route_apart(std::vector<std::string> prefill, std::vector<std::string> decode) {
    start({.disaggregated = true, .prefill_urls = std::move(prefill), .decode_urls = std::move(decode)});
  }
  void start(RouterOptions options) {
    const std::size_t replicas =
        options.worker_urls.size() + options.prefill_urls.size() + options.decode_urls.size();
    if (options.policy == "cache_aware") options.policy = "round_robin";
    options.startup_check_interval_ms = 20;
    options.metrics_interval_ms = 50;
    options.retry.initial_backoff_ms = 1;
    auto started = Router::start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    router_ = *std::move(started);
    wait(
        [&] { return get("/workers").body.find("\"unknown\"") == std::string::npos && ready() >= replicas; });
  }
  std::size_t ready() {
    const std::string body = get("/readiness").body;
    return static_cast<std::size_t>(std::atoi(body.substr(body.find("healthy_workers") + 17).c_str()));
  }
  template <class Condition>
  void wait(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(condition()) << "not within 60 seconds";
  }
  http::Client connect() { return *http::Client::connect({.port = router_->port()}); }
  http::Response get(std::string_view target) { return *connect().get(target); }
  http::Response post(std::string body, http::Headers headers = {}) {
    return *connect().request("POST", "/v1/completions", std::move(body), std::move(headers));
  }

  std::unique_ptr<Router> router_;
};

TEST_F(RouterTest, PassesRequestsOnAsTheyAre) {
  Replica a("a");
  route({a.url()});
  EXPECT_EQ(post("{ \"x\":  1 }").body, "aPOST/v1/completions{ \"x\":  1 }");
  EXPECT_EQ(get("/v1/some%20thing?q=%41").body, "aGET/v1/some thingq=%41");
}

TEST_F(RouterTest, HasAPageWithItsFleet) {
  Replica a("a");
  route({a.url()});
  const http::Response page = get("/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(page.body.find(R"(<div id="app" data-of="fleet">)"), std::string::npos);
  router_.reset();
  route({a.url()}, {.page = false});
  EXPECT_EQ(get("/").body, "aGET/");
}

TEST_F(RouterTest, ThePageIsBehindTheKey) {
  router_ = *Router::start({.api_keys = {"secret"}});
  const http::Response login = get("/");
  EXPECT_EQ(login.status, 401);
  EXPECT_NE(login.body.find("API key"), std::string::npos);
  EXPECT_EQ(connect().request("GET", "/", {}, {{"Authorization", "Bearer secret"}})->status, 200);
}

TEST_F(RouterTest, RanksBehindOnePortAreEndpoints) {
  Replica a("a", [](std::shared_ptr<http::Exchange> e) {
    const auto rank = e->request().headers.find("X-data-parallel-rank");
    e->respond({.content_type = "text/plain", .body = std::string(rank.value_or("none"))});
  });
  a.engines = 3;
  route({a.url()}, {.policy = "round_robin"});
  wait([&] { return ready() == 3; });
  std::multiset<std::string> ranks;
  for (int i = 0; i < 6; ++i) ranks.insert(post("{}").body);
  EXPECT_EQ(ranks, (std::multiset<std::string>{"0", "0", "1", "1", "2", "2"}));
  EXPECT_EQ(post("{}", {{"X-data-parallel-rank", "7"}}).body, "7") << "the client's own";
  EXPECT_NE(get("/metrics").body.find(fmt::format("smg_worker_health{{worker=\"{}@2\"}} 1", a.url())),
            std::string::npos);
  a.engines = 1;
  wait([&] { return ready() == 1; });
  EXPECT_EQ(post("{}").body, "none");
  a.engines = 2;
  wait([&] { return ready() == 2; });
  EXPECT_EQ(connect().request("DELETE", "/workers/0", {})->status, 202);
  EXPECT_EQ(ready(), 0U) << "a worker goes with all of its ranks";
}

TEST_F(RouterTest, TakesTurns) {
  Replica a("a"), b("b");
  route({a.url(), b.url()});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(post("{}").status, 200);
  EXPECT_EQ(a.requests, 5);
  EXPECT_EQ(b.requests, 5);
}

constexpr const char* kHandedOver = "octavo_route_prefills_total{outcome=\"handed_over\"} ";
constexpr const char* kFailed = "octavo_route_prefills_total{outcome=\"failed\"} ";

TEST_F(RouterTest, PrefillAndDecodeApart) {
  std::string first_leg, id;
  Replica prefill("p", [&](auto e) {
    first_leg = e->request().body;
    id = e->request().headers.find("X-Request-Id").value_or("");
    e->respond({.body = R"({"kv_transfer_params": {"remote_port": 7}})"});
  });
  Replica decode("d", [&](auto e) {
    const bool second_leg = e->request().body.find("kv_transfer_params") != std::string::npos;
    if (second_leg) {
      EXPECT_EQ(e->request().headers.find("X-Request-Id"), id);
    }
    e->respond({.body = e->request().body});
  });
  route_apart({prefill.url()}, {decode.url()});
  EXPECT_EQ(post(R"({"prompt": "a", "max_tokens": 9})").body,
            R"({"kv_transfer_params":{"remote_port":7},"prompt": "a", "max_tokens": 9})");
  EXPECT_NE(first_leg.find(R"("max_tokens":1)"), std::string::npos) << first_leg;
  EXPECT_NE(first_leg.find(R"("do_remote_decode":true)"), std::string::npos) << first_leg;
  // All else is for those who decode, as it came.
  EXPECT_EQ(post(R"({"prompt": ["a", "b"]})").body, R"({"prompt": ["a", "b"]})");
  EXPECT_EQ(prefill.requests, 1);
  EXPECT_EQ(decode.requests, 2);
  EXPECT_NE(get("/metrics").body.find(std::string(kHandedOver) + "1\n"), std::string::npos);
  EXPECT_NE(get("/workers").body.find(R"("worker_type":"prefill")"), std::string::npos);
  EXPECT_NE(get("/workers").body.find(R"("prefill_count":1,"decode_count":1,"regular_count":0)"),
            std::string::npos);
}

TEST_F(RouterTest, WithoutAFirstLegTheDecoderDoesAll) {
  Replica refusing("r", [](auto e) { e->respond({.status = 400}); });
  Replica mute("m", [](auto e) {
    e->start_stream({.content_type = "application/json"});
    e->write("{");  // and dropped
  });
  Replica silent("s", [](auto e) { e->respond({.body = R"({"choices": []})"}); });
  Replica decode("d", [](auto e) { e->respond({.body = e->request().body}); });
  RouterOptions options{.disaggregated = true,
                        .prefill_urls = {refusing.url(), mute.url(), silent.url()},
                        .decode_urls = {decode.url()},
                        .policy = "round_robin"};
  start(options);
  const std::string body = R"({"prompt": "a", "stream": true})";
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post(body).body, body);
  EXPECT_GE(refusing.requests * mute.requests * silent.requests, 1);
  for (Replica* gone : {&refusing, &mute, &silent}) gone->stop();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post(body).body, body);
  EXPECT_NE(get("/metrics").body.find(std::string(kFailed) + "12\n"), std::string::npos);
  EXPECT_EQ(decode.requests, 12);
}

TEST_F(RouterTest, PoolsAreNamedOnOneSide) {
  const auto field = [](RouterOptions options) { return Router::start(std::move(options)).error().field; };
  EXPECT_EQ(field({.disaggregated = true, .decode_urls = {"http://a:1"}}), "prefill");
  EXPECT_EQ(field({.disaggregated = true, .prefill_urls = {"http://a:1"}}), "decode");
  EXPECT_EQ(field({.worker_urls = {"http://a:1"}, .disaggregated = true}), "worker-urls");
  EXPECT_EQ(field({.prefill_urls = {"http://a:1"}}), "prefill");
  EXPECT_EQ(field({.disaggregated = true, .prefill_urls = {"x"}, .decode_urls = {"http://a:1"}}), "prefill");
}

// Keeps what it is asked until a test lets go of it.
class Keeper {
 public:
  void operator()(std::shared_ptr<http::Exchange> exchange) {
    const std::lock_guard lock(mutex_);
    exchange->on_close([this](http::CloseReason) { ++closed; });
    kept_.push_back(std::move(exchange));
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return kept_.size();
  }
  std::shared_ptr<http::Exchange> at(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return kept_.at(i);
  }
  std::atomic<int> closed = 0;

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<http::Exchange>> kept_;
};

TEST_F(RouterTest, WhoDoesNotBeginIsOutrunByAnother) {
  Keeper keeper;
  Replica stuck("stuck", std::ref(keeper)), b("b");
  route({stuck.url(), b.url()}, {.hedge_after_ms = 1, .breaker = {.enabled = false}});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post("{}").body.substr(0, 1), "b");
  EXPECT_GE(stuck.requests, 1);
  wait([&] { return keeper.closed == stuck.requests; });  // who lost is told
  const std::string metrics = get("/metrics").body;
  EXPECT_NE(metrics.find("octavo_route_hedges_total{outcome=\"won\"}"), std::string::npos);
  EXPECT_EQ(metrics.find("smg_worker_errors_total{"), std::string::npos);
  wait([&] { return get("/workers").body.find(R"("load":1)") == std::string::npos; });
}

TEST_F(RouterTest, WhereTheFirstOneFailsTheHedgeGoesOn) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b", std::ref(keeper));
  route({a.url(), b.url()}, {.hedge_after_ms = 1});
  auto answer = std::async(std::launch::async, [&] { return post("{}"); });
  wait([&] { return keeper.size() == 2; });
  keeper.at(0)->respond({.status = 500});
  wait([&] { return get("/metrics").body.find("smg_worker_errors_total{") != std::string::npos; });
  keeper.at(1)->respond({.body = "late"});
  EXPECT_EQ(answer.get().body, "late");
  EXPECT_NE(get("/metrics").body.find("smg_worker_retries_total 0\n"), std::string::npos);
  EXPECT_EQ(keeper.size(), 2U);
}

TEST_F(RouterTest, AHedgeThatFailsChangesNothing) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b", std::ref(keeper));
  route({a.url(), b.url()}, {.hedge_after_ms = 1});
  auto answer = std::async(std::launch::async, [&] { return post("{}"); });
  wait([&] { return keeper.size() == 2; });
  keeper.at(1)->respond({.status = 500});
  wait([&] { return get("/metrics").body.find("octavo_route_hedges_total{") != std::string::npos; });
  keeper.at(0)->respond({.body = "first"});
  EXPECT_EQ(answer.get().body, "first");
}

TEST_F(RouterTest, TriesAnotherReplicaWhenOneFails) {
  Replica broken("broken", [](auto e) { e->respond({.status = 500}); });
  Replica mute("mute", [](auto e) {
    e->start_stream({.content_type = "application/json"});
    e->write("{\"half\":");  // and dropped
  });
  Replica well("well");
  route({broken.url(), mute.url(), well.url()});
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(post("{}").body.starts_with("well")) << i;
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
  EXPECT_EQ(post("{").status, 400);
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

TEST_F(RouterTest, AStreamThatBreaksIsNotTakenForComplete) {
  Replica a("a", [&](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");  // and dropped
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

// Replicas that say "abc" token by token, each from where it is told to go on; `dies` of them break behind
// the next token.
class Sayers {
 public:
  explicit Sayers(int dies, bool resumes = true) : dies_(dies), resumes_(resumes) {}

  void operator()(std::shared_ptr<http::Exchange> e) {
    const json::object body = json::parse(e->request().body).as_object();
    EXPECT_EQ(body.at("return_token_ids"), true);
    std::size_t at = 0;
    if (body.contains("resume_token_ids") && resumes_) at = body.at("resume_token_ids").as_array().size();
    http::Headers headers;
    if (body.contains("resume_token_ids") && resumes_) headers.add("X-Octavo-Resumed", std::to_string(at));
    e->start_stream({.content_type = "text/event-stream", .headers = std::move(headers)});
    const bool breaks = dies_-- > 0;
    const std::string id = std::to_string(dies_);
    for (const std::string_view text("abc"); at < text.size(); ++at) {
      const json::object choice{{"text", text.substr(at, 1)}, {"token_ids", json::array{at}}};
      e->write(http::sse_event(json::serialize(json::object{{"id", id}, {"choices", json::array{choice}}})));
      if (breaks) return;  // and dropped
    }
    e->write(http::sse_event("[DONE]"));
    e->finish();
  }

 private:
  std::atomic<int> dies_;
  bool resumes_;
};

class MigrationTest : public RouterTest {
 protected:
  // The texts of a stream's events, and its end or error.
  std::string stream_through(Sayers& sayers, int limit) {
    Replica a("a", std::ref(sayers)), b("b", std::ref(sayers));
    route({a.url(), b.url()}, {.migration_limit = limit, .breaker = {.enabled = false}});
    return stream();
  }
  std::string stream() {
    http::Client client = connect();
    EXPECT_TRUE(client.open("POST", "/v1/completions", R"({"prompt":"a","stream":true})"));
    http::SseReader reader;
    std::string said;
    std::set<std::string> ids;
    Result<std::optional<std::string>> piece;
    while ((piece = client.read()) && *piece)
      for (const std::string& event : reader.push(**piece)) {
        if (event == "[DONE]") {
          said += "!";
          continue;
        }
        const json::object chunk = json::parse(event).as_object();
        if (chunk.contains("error")) {
          said += "?";
          continue;
        }
        ids.emplace(chunk.at("id").as_string());
        const json::object& choice = chunk.at("choices").at(0).as_object();
        EXPECT_FALSE(choice.contains("token_ids"));
        said += choice.at("text").as_string();
      }
    EXPECT_EQ(piece.has_value(), said.ends_with("!")) << "the answer is only complete when it says so";
    EXPECT_EQ(ids.size(), 1U);
    return said;
  }
  bool counted(std::string_view line) { return get("/metrics").body.find(line) != std::string::npos; }
};

TEST_F(MigrationTest, AStreamThatBreaksGoesOnElsewhere) {
  Sayers sayers(2);
  EXPECT_EQ(stream_through(sayers, 3), "abc!");
  EXPECT_TRUE(counted("octavo_route_migrations_total{outcome=\"continued\"} 2\n"));
  EXPECT_FALSE(counted("outcome=\"failed\""));
}

TEST_F(MigrationTest, AsOftenAsAllowed) {
  Sayers sayers(3);
  EXPECT_EQ(stream_through(sayers, 1), "ab?");
  EXPECT_TRUE(counted("octavo_route_migrations_total{outcome=\"failed\"} 1\n"));
}

TEST_F(MigrationTest, AReplicaThatBeginsAnewIsNotHeard) {
  Sayers sayers(1, false);
  EXPECT_EQ(stream_through(sayers, 3), "a?");
}

TEST_F(MigrationTest, OneThatCannotGoOnIsPassedOver) {
  Sayers breaks(1000), goes_on(0), begins_anew(0, false);
  std::atomic<int> in_vain = 0;
  const auto then = [&](Sayers& next) {
    return [&](std::shared_ptr<http::Exchange> e) {
      const bool begun = e->request().body.contains("resume_token_ids");
      if (begun && &next == &begins_anew) ++in_vain;
      begun ? next(std::move(e)) : breaks(std::move(e));
    };
  };
  Replica a("a", then(goes_on)), b("b", then(begins_anew)), c("c", then(goes_on));
  route({a.url(), b.url(), c.url()}, {.migration_limit = 3, .breaker = {.enabled = false}});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(stream(), "abc!");
  EXPECT_GT(in_vain, 0);
}

// Of a server that is not `octavo serve`: no [DONE], no empty line behind the last event.
TEST_F(MigrationTest, AStreamThatEndsWithoutSayingSoIsComplete) {
  Replica a("a", [](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: {\"id\":\"x\"}\n\ndata: {\"id\":\"y\"}");
    e->finish();
  });
  route({a.url()}, {.migration_limit = 3});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", R"({"prompt":"a","stream":true})"));
  std::string said;
  Result<std::optional<std::string>> piece;
  while ((piece = client.read()) && *piece) said += **piece;
  EXPECT_TRUE(piece) << "a proper end";
  EXPECT_EQ(said, "data: {\"id\":\"x\"}\n\ndata: {\"id\":\"y\"}");
  EXPECT_EQ(a.requests, 1);
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

TEST_F(RouterTest, KnowsTheModels) {
  Replica a("lora-a"), b("lora-b");
  route({a.url(), b.url()});
  const std::string models = get("/v1/models").body;
  for (const char* id : {"\"m\"", "\"lora-a\"", "\"lora-b\""})
    EXPECT_NE(models.find(id), std::string::npos) << models;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(post(R"({"model": "lora-b"})").body.starts_with("lora-b"));
  const http::Response unknown = post(R"({"model": "nobody's"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("The model `nobody's` does not exist."), std::string::npos);
}

TEST_F(RouterTest, WorkersComeAndGo) {
  Replica a("a"), b("b");
  route({a.url()});
  EXPECT_EQ(connect().post_json("/workers", R"({"url": ")" + b.url() + R"("})")->status, 202);
  EXPECT_EQ(connect().post_json("/workers", R"({"url": ")" + b.url() + R"("})")->status, 400)
      << "there already";
  EXPECT_EQ(connect().post_json("/workers", R"({"url": "ftp://x"})")->status, 400);
  wait([&] { return ready() == 2; });
  EXPECT_EQ(connect().request("DELETE", "/workers/0")->status, 202);
  EXPECT_EQ(connect().request("DELETE", "/workers/0")->status, 404);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(post("{}").body.starts_with("b"));
  wait([&] { return get("/workers/1").body.find("\"waiting\":3") != std::string::npos; });
}

TEST_F(RouterTest, ExplainsItself) {
  Replica a("a");
  route({a.url()}, {.policy = "least_loaded"});
  EXPECT_FALSE(post("{}").headers.find("X-Octavo-Explain"));
  const auto response = post("{}", {{"X-Octavo-Explain", "1"}});
  const auto told = response.headers.find("X-Octavo-Explain");
  ASSERT_TRUE(told);
  EXPECT_NE(told->find("active-request-scorer"), std::string::npos) << *told;
  EXPECT_NE(told->find(a.url()), std::string::npos);
}

TEST_F(RouterTest, RefusesMoreThanItMayTake) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  Replica a("a", [&](auto e) { kept.push_back(e); });
  route({a.url()}, {.max_concurrent_requests = 1});
  http::Client first = connect();
  ASSERT_TRUE(first.send_raw("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"));
  wait([&] { return a.requests == 1; });
  EXPECT_EQ(post("{}").status, 429);
}

TEST_F(RouterTest, AsksForTheKey) {
  Replica a("a");
  RouterOptions options{.worker_urls = {a.url()}, .policy = "random", .api_keys = {"secret"}};
  router_ = *Router::start(options);
  EXPECT_EQ(post("{}").status, 401);
  EXPECT_EQ(get("/workers").status, 401);
  EXPECT_EQ(post("{}", {{"Authorization", "Bearer wrong"}}).status, 401);
  wait([&] { return post("{}", {{"Authorization", "Bearer secret"}}).status == 200; });
}

TEST_F(RouterTest, TenantsHaveLimitsAndSeeNothingOfTheFleet) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  std::vector<std::string> keys;
  Replica a("a", [&](auto e) {
    keys.emplace_back(e->request().headers.find("Authorization").value_or(""));
    kept.push_back(e);
  });
  RouterOptions options{.worker_urls = {a.url()},
                        .policy = "random",
                        .api_keys = {"operator"},
                        .tenants = {{.name = "one", .keys = {"k1"}, .concurrent_max = 1}}};
  router_ = *Router::start(options);
  const http::Headers tenant{{"Authorization", "Bearer k1"}};
  const http::Headers operators{{"Authorization", "Bearer operator"}};
  const auto ask = [&](std::string_view target, const http::Headers& headers) {
    return *connect().request("GET", target, {}, headers);
  };
  wait([&] { return ask("/readiness", tenant).status == 200; });
  EXPECT_EQ(ask("/workers", tenant).status, 403);
  EXPECT_EQ(ask("/workers", operators).status, 200);
  EXPECT_EQ(post("{}").status, 401);
  http::Client first = connect();
  ASSERT_TRUE(first.send_raw(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k1\r\nContent-Length: 2\r\n\r\n{}"));
  wait([&] { return a.requests == 1; });
  const http::Response refused = post("{}", tenant);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
  EXPECT_EQ(keys, std::vector<std::string>{"Bearer operator"}) << "a tenant's key stays here";
  EXPECT_NE(ask("/metrics", operators).body.find("octavo_route_tenant_requests_active{tenant=\"one\"} 1"),
            std::string::npos);
}

TEST(Router, MistakesNameTheField) {
  EXPECT_EQ(Router::start({.worker_urls = {"nonsense"}}).error().field, "worker-urls");
  EXPECT_EQ(Router::start({.policy = "nonsense"}).error().field, "policy");
}

}  // namespace
}  // namespace octavo::fleet
