#include "fleet/route/router.h"

#include <future>

#include "fleet/route/test_router.h"
#include "http/testing/gzip.h"

namespace octavo::fleet {
namespace {

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

TEST_F(RouterTest, PoolsAreNamedOnOneSide) {
  const auto field = [](RouterOptions options) { return Router::start(std::move(options)).error().field; };
  EXPECT_EQ(field({.pd = {.enabled = true, .decode_urls = {"http://a:1"}}}), "prefill");
  EXPECT_EQ(field({.pd = {.enabled = true, .prefill_urls = {"http://a:1"}}}), "decode");
  EXPECT_EQ(field({.workers = {.urls = {"http://a:1"}}, .pd = {.enabled = true}}), "worker-urls");
  EXPECT_EQ(field({.pd = {.prefill_urls = {"http://a:1"}}}), "prefill");
  EXPECT_EQ(field({.pd = {.enabled = true, .prefill_urls = {"x"}, .decode_urls = {"http://a:1"}}}),
            "prefill");
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

TEST_F(RouterTest, AnthropicsClientsGetItsFormOfModelsAndErrors) {
  Replica a("lora-a", [](std::shared_ptr<http::Exchange> e) {
    e->respond({.body = std::string(e->request().headers.find("X-Request-Id").value_or(""))});
  });
  route({a.url()});
  const auto models = connect().request("GET", "/v1/models", "", {{"anthropic-version", "2023-06-01"}});
  EXPECT_NE(models->body.find(R"("first_id":"lora-a")"), std::string::npos) << models->body;
  EXPECT_NE(models->body.find(R"("type":"model")"), std::string::npos) << models->body;
  EXPECT_NE(get("/v1/models").body.find(R"("object":"list")"), std::string::npos);
  const auto unknown = connect().post_json("/v1/messages", R"({"model": "nobody's"})");
  EXPECT_EQ(unknown->status, 404);
  EXPECT_NE(unknown->body.find("not_found_error"), std::string::npos) << unknown->body;
  EXPECT_NE(unknown->body.find("\"request_id\":\""), std::string::npos) << unknown->body;
  const auto known = connect().post_json("/v1/messages", R"({"model": "m"})");
  EXPECT_EQ(known->headers.find("request-id"), known->body) << "the worker has the same id";
  EXPECT_FALSE(known->body.empty());
}

TEST_F(RouterTest, WorkersComeAndGo) {
  Replica a("a"), b("b");
  route({a.url()});
  EXPECT_EQ(connect().post_json("/workers", R"({"url": ")" + b.url() + R"("})")->status, 202);
  const auto again = connect().post_json("/workers", R"({"url": ")" + b.url() + R"("})");
  EXPECT_EQ(again->status, 202);
  EXPECT_NE(again->body.find(R"("worker_id":"1")"), std::string::npos) << "the same worker";
  EXPECT_EQ(connect().post_json("/workers", R"({"url": "ftp://x"})")->status, 400);
  wait([&] { return ready() == 2; });
  EXPECT_EQ(connect().request("DELETE", "/workers/0")->status, 202);
  EXPECT_EQ(connect().request("DELETE", "/workers/0")->status, 404);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(post("{}").body.starts_with("b"));
  wait([&] { return get("/workers/1").body.find("\"waiting\":3") != std::string::npos; });
  EXPECT_NE(get("/workers/1").body.find("\"kv_usage\":0.0,"), std::string::npos);
  const auto wrong = connect().request("PUT", "/workers/1", "{}");
  EXPECT_EQ(wrong->status, 405);
  EXPECT_EQ(wrong->headers.find("Allow"), "GET, DELETE");
}

TEST_F(RouterTest, ExplainsItself) {
  Replica a("a");
  route({a.url()}, {.policy = "least_loaded"});
  EXPECT_FALSE(post("{}").headers.find("X-Octavo-Explain"));
  const auto response = post("{}", {{"X-Octavo-Explain", "1"}});
  const auto explained = response.headers.find("X-Octavo-Explain");
  ASSERT_TRUE(explained);
  EXPECT_NE(explained->find("active-request-scorer"), std::string::npos) << *explained;
  EXPECT_NE(explained->find(a.url()), std::string::npos);
  EXPECT_NE(explained->find("\"weight\":1.0"), std::string::npos) << *explained;
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
  RouterOptions options{.workers = {.urls = {a.url()}}, .policy = "random", .api_keys = {"secret"}};
  router_ = *Router::start(options);
  EXPECT_EQ(post("{}").status, 401);
  EXPECT_EQ(get("/workers").status, 401);
  EXPECT_EQ(post("{}", {{"Authorization", "Bearer wrong"}}).status, 401);
  wait([&] { return post("{}", {{"Authorization", "Bearer secret"}}).status == 200; });
}

TEST_F(RouterTest, ProbesNeedNoKey) {
  Replica a("a");
  RouterOptions options{.workers = {.urls = {a.url()}}, .policy = "random", .api_keys = {"secret"}};
  router_ = *Router::start(options);
  wait([&] { return get("/readiness").status == 200; });
  for (const char* path : {"/health", "/liveness", "/readiness"}) {
    EXPECT_EQ(get(path).status, 200) << path;
    EXPECT_EQ(connect().request("HEAD", path)->status, 200) << path;
    EXPECT_EQ(connect().request("POST", path, "{}")->status, 401) << path;
  }
  for (const char* path : {"/metrics", "/v1/models", "/get_loads", "/health/", "/"})
    EXPECT_EQ(get(path).status, 401) << path;
}

TEST_F(RouterTest, TenantsHaveLimitsAndSeeNothingOfTheFleet) {
  std::vector<std::shared_ptr<http::Exchange>> kept;
  std::vector<std::string> keys;
  std::atomic<int> keys_count = 0;
  Replica a("a", [&](auto e) {
    keys.emplace_back(e->request().headers.find("Authorization").value_or(""));
    kept.push_back(e);
    ++keys_count;
  });
  RouterOptions options{.workers = {.urls = {a.url()}},
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
  for (const char* path : {"/workers", "/workers/", "/metrics/", "/engine_metrics", "/server_info",
                           "/v1/loads/", "/get_server_info", "/is_sleeping", "/load"})
    EXPECT_EQ(ask(path, tenant).status, 403) << path;
  EXPECT_EQ(ask("/workers", {{"X-Api-Key", "k1"}}).status, 403) << "Anthropic's header of the key";
  EXPECT_EQ(ask("/workers", operators).status, 200);
  EXPECT_EQ(post("{}").status, 401);
  http::Client first = connect();
  ASSERT_TRUE(first.send_raw(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k1\r\nContent-Length: 2\r\n\r\n{}"));
  wait([&] { return keys_count == 1; });
  const http::Response refused = post("{}", tenant);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
  EXPECT_EQ(keys, std::vector<std::string>{"Bearer operator"}) << "a tenant's key stays here";
  EXPECT_NE(ask("/metrics", operators).body.find("octavo_route_tenant_requests_active{tenant=\"one\"} 1"),
            std::string::npos);
}

TEST(Router, MistakesNameTheField) {
  EXPECT_EQ(Router::start({.workers = {.urls = {"nonsense"}}}).error().field, "worker-urls");
  EXPECT_EQ(Router::start({.policy = "nonsense"}).error().field, "policy");
}

TEST_F(RouterTest, PathsStayAsTheyWereWritten) {
  std::string target;
  Replica a("a", [&](auto e) {
    target = e->request().encoded_path;
    e->respond({});
  });
  route({a.url()});
  for (const std::string path : {"/v1/files/org%2Fname%3Fx", "/v1/models/org%2Fname%3Fx"}) {
    get(path + "?a=b%26c");
    EXPECT_EQ(target, path);
  }
}

TEST_F(RouterTest, WebSocketsAreRefusedByName) {
  Replica a("a");
  route({a.url()});
  const auto refused =
      *connect().request("GET", "/v1/realtime", {}, {{"Connection", "Upgrade"}, {"Upgrade", "websocket"}});
  EXPECT_EQ(refused.status, 426);
  EXPECT_NE(refused.body.find("WebSocket"), std::string::npos);
  EXPECT_EQ(a.requests, 0);
}

TEST_F(RouterTest, WhatIsNoJsonIsRefusedHere) {
  Replica a("a");
  route({a.url()});
  for (const char* body : {"{", "{\"prompt\": \"\xff\"}", "nonsense"}) {
    const http::Response refused = post(body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_TRUE(refused.body.contains("not valid JSON")) << refused.body;
  }
  EXPECT_EQ(a.requests, 0);
  EXPECT_EQ(post("{\"temperature\": NaN}").status, 200) << "for the worker to say";
  EXPECT_EQ(post("{", {{"Content-Type", "text/plain"}}).status, 200);
}

TEST_F(RouterTest, AModelThatHasJustComeIsFound) {
  Replica a("a");
  route({a.url()});
  EXPECT_EQ(post(R"({"model": "more"})").status, 404);
  a.has_more = true;
  EXPECT_EQ(post(R"({"model": "more"})").status, 200) << "it waits until models may be requested again";
}

TEST_F(RouterTest, FormsAndPathsNameModels) {
  Replica a("lora-a"), b("lora-b");
  route({a.url(), b.url()});
  const std::string form = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nlora-b\r\n--x--\r\n";
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(get("/v1/models/lora-b").body.starts_with("lora-b"));
    EXPECT_TRUE(post(R"({"model": "lora-b:latest"})").body.starts_with("lora-b")) << "as Ollama's clients";
    EXPECT_TRUE(post(form, {{"Content-Type", "multipart/form-data; boundary=x"}}).body.starts_with("lora-b"));
  }
}

// A worker that stores responses, and does not know the ids of responses at other workers.
Replica::Behaviour storing(const std::string& name) {
  return [name, count = std::make_shared<std::atomic<int>>(0)](std::shared_ptr<http::Exchange> e) {
    const http::Request& request = e->request();
    const std::string mine = "resp_" + name + "_";
    if (request.method == "POST" && !request.body.contains("previous"))
      return e->respond({.body = fmt::format(R"({{"id": "{}{}"}})", mine, ++*count)});
    const bool known = request.path.contains(mine) || request.body.contains(mine);
    e->respond({.status = known ? 200 : 404, .body = name});
  };
}

TEST_F(RouterTest, StoredResponsesAreWithWhoGaveThem) {
  Replica a("a", storing("a")), b("b", storing("b")), c("c", storing("c"));
  route({a.url(), b.url(), c.url()});
  const auto respond = [&](const std::string& body) { return *connect().post_json("/v1/responses", body); };
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    const std::string body = respond(R"({"input": "x"})").body;
    ids.push_back(body.substr(8, body.size() - 10));
  }
  const int before = a.requests + b.requests + c.requests;
  for (const std::string& id : ids) {
    EXPECT_EQ(get("/v1/responses/" + id).status, 200) << id;
    EXPECT_EQ(respond(R"({"previous_response_id": ")" + id + "\"}").status, 200) << id;
  }
  EXPECT_EQ(a.requests + b.requests + c.requests - before, 12) << "nobody else is asked";
  // The router asks all workers for responses that another router has forwarded.
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(get(fmt::format("/v1/responses/resp_{}_99", name)).status, 200);
  EXPECT_EQ(get("/v1/responses/resp_nobody").status, 404);
}

TEST_F(RouterTest, TheCostOfAResponseThatNoWorkerHasIsSummed) {
  const auto unknown = [](const std::shared_ptr<http::Exchange>& e) {
    e->respond({.status = 404, .headers = {{std::string(kCostHeader), "output_tokens=1"}}});
  };
  Replica a("a", unknown), b("b", unknown);
  route({a.url(), b.url()});
  EXPECT_FALSE(get("/v1/responses/resp_nobody").headers.find(kCostHeader));
  const http::Response with_cost =
      *connect().request("GET", "/v1/responses/resp_nobody", {}, {{std::string(kCostHeader), "1"}});
  EXPECT_EQ(with_cost.status, 404);
  EXPECT_EQ(with_cost.headers.find(kCostHeader), "output_tokens=2");
}

// A worker that stores conversations. A POST makes a new id, and the worker knows only its own ids.
Replica::Behaviour conversing(const std::string& name) {
  return [name, count = std::make_shared<std::atomic<int>>(0)](const std::shared_ptr<http::Exchange>& e) {
    const http::Request& request = e->request();
    const std::string mine = "conv_" + name + "_";
    if (request.method == "POST" && request.path == "/v1/conversations")
      return e->respond({.body = fmt::format(R"({{"id": "{}{}"}})", mine, ++*count)});
    const bool known = request.path.contains(mine) || request.body.contains(mine);
    e->respond({.status = known ? 200 : 404, .body = name});
  };
}

TEST_F(RouterTest, ConversationsAreWithWhoHasThem) {
  Replica a("a", conversing("a")), b("b", conversing("b")), c("c", conversing("c"));
  route({a.url(), b.url(), c.url()});
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    const std::string body = connect().post_json("/v1/conversations", "{}")->body;
    ids.push_back(body.substr(8, body.size() - 10));
  }
  const auto post = [&](const std::string& path, const std::string& body) {
    return connect().post_json(path, body)->status;
  };
  const int before = a.requests + b.requests + c.requests;
  for (const std::string& id : ids) {
    EXPECT_EQ(get("/v1/conversations/" + id).status, 200) << id;
    EXPECT_EQ(get("/v1/conversations/" + id + "/items").status, 200) << id;
    EXPECT_EQ(post("/v1/conversations/" + id + "/items", R"({"items": []})"), 200) << id;
    EXPECT_EQ(post("/v1/responses", R"({"input": "x", "conversation": ")" + id + "\"}"), 200) << id;
    EXPECT_EQ(post("/v1/responses", R"({"input": "x", "conversation": {"id": ")" + id + "\"}}"), 200) << id;
  }
  EXPECT_EQ(a.requests + b.requests + c.requests - before, 30) << "no other worker gets a request";
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(get(fmt::format("/v1/conversations/conv_{}_99", name)).status, 200) << "of another router";
  EXPECT_EQ(get("/v1/conversations/conv_nobody").status, 404);
}

TEST_F(RouterTest, CompressedBodiesAreReadForTheChoice) {
  std::string body, coding;
  Replica a("a", [&](auto e) {
    body = e->request().body;
    coding = e->request().headers.find("Content-Encoding").value_or("none");
    e->respond({.body = "{}"});
  });
  route({a.url()}, {.http = {.body_bytes_max = 1 << 20}});
  const auto send = [&](std::string_view bytes, std::string_view name) {
    return post(std::string(bytes), {{"Content-Encoding", std::string(name)}}).status;
  };
  const std::string text = R"({"model":"m","prompt":"hi"})";
  for (const char* name : {"gzip", "deflate"}) {
    EXPECT_EQ(send(http::gzip(text), name), 200);
    EXPECT_EQ(body, text);
    EXPECT_EQ(coding, "none");
  }
  EXPECT_EQ(send(text, "identity"), 200);
  EXPECT_EQ(send(text, "gzip"), 400);
  EXPECT_EQ(send(text, "br"), 415);
  EXPECT_EQ(send(http::gzip(std::string(2 << 20, ' ')), "gzip"), 413);
}

TEST_F(RouterTest, SglangsOlderRoutesNameWorkersInTheQuery) {
  Replica a("a"), b("b");
  route({a.url()});
  const auto at = [&](const char* path) { return path + ("?url=" + b.url()); };
  EXPECT_EQ(connect().post_json(at("/add_worker"), "")->status, 202);
  wait([&] { return ready() == 2; });
  EXPECT_TRUE(get("/list_workers").body.contains(b.url()));
  EXPECT_TRUE(get("/v1/loads").body.contains(b.url()));
  EXPECT_EQ(connect().post_json(at("/remove_worker"), "")->status, 202);
  EXPECT_FALSE(get("/list_workers").body.contains(b.url()));
  EXPECT_EQ(connect().post_json(at("/remove_worker"), "")->status, 404);
  EXPECT_EQ(connect().post_json("/add_worker", "")->status, 400);
}

TEST_F(RouterTest, AnotherHeaderMayNameTheRequest) {
  std::string id;
  Replica a("a", [&](auto e) {
    id = e->request().headers.find("X-Request-Id").value_or("");
    e->respond({});
  });
  route({a.url()}, {.telemetry = {.request_id_headers = {"X-Trace"}}});
  post("{}", {{"X-Trace", "t1"}});
  EXPECT_EQ(id, "t1");
}

TEST_F(RouterTest, WhatMeansAllWorkersGoesToAll) {
  std::atomic<int> status = 200;
  Replica a("a"), b("b", [&](auto e) { e->respond({.status = status}); }), c("c");
  route({a.url(), b.url(), c.url()});
  for (const char* path :
       {"/reset_prefix_cache", "/v1/load_lora_adapter", "/pause", "/update_weights_from_disk",
        "/start_expert_distribution_record", "/hicache/storage-backend/clear", "/inference/v1/abort_requests",
        "/reset_prefix_cache/"}) {
    const int before = a.requests + b.requests + c.requests;
    EXPECT_EQ(connect().post_json(path, "{}")->status, 200);
    EXPECT_EQ(a.requests + b.requests + c.requests - before, 3) << path;
  }
  const int before = a.requests;
  EXPECT_EQ(get("/flush_cache").status, 200);
  EXPECT_EQ(a.requests - before, 1) << "SGLang's clients may GET it";
  status = 400;
  const http::Response partly = *connect().post_json("/sleep", "{}");
  EXPECT_EQ(partly.status, 400);
  EXPECT_TRUE(partly.body.contains("\"success\":false")) << partly.body;
  c.stop();
  EXPECT_EQ(connect().post_json("/sleep", "{}")->status, 502);
}

TEST_F(RouterTest, RanksBehindOnePortGetOneRequestThatMeansAllWorkers) {
  Replica a("a"), b("b");
  a.engines = 2;
  route({a.url(), b.url()});
  wait([&] { return ready() == 3; });
  const http::Response all = *connect().post_json("/pause", "{}");
  EXPECT_EQ(all.status, 200);
  EXPECT_TRUE(all.body.contains("all 2 workers")) << all.body;
  EXPECT_EQ(a.requests, 1);
  EXPECT_EQ(b.requests, 1);
}

TEST_F(RouterTest, WhatMeansAllWorkersDoesNotWaitForAFrozenOne) {
  Keeper keeper;
  Replica a("a"), frozen("frozen", std::ref(keeper));
  route({a.url(), frozen.url()}, {.health = {.interval_ms = 20}});
  auto answer =
      std::async(std::launch::async, [&] { return connect().post_json("/reset_prefix_cache", "{}"); });
  wait([&] { return keeper.size() == 1; });
  frozen.well = false;
  EXPECT_EQ(answer.get()->status, 502);
  wait([&] { return keeper.closed == 1; });
}

TEST_F(RouterTest, AWorkerThatComesBackIsAskedAtOnce) {
  Replica a("a");
  route({a.url()}, {.health = {.interval_ms = 3'600'000}});
  post("{}");
  EXPECT_TRUE(get("/metrics").body.contains("smg_worker_selection_total{worker="));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(connect().request("DELETE", "/workers/0")->status, 202);
    EXPECT_FALSE(get("/metrics").body.contains("smg_worker_selection_total{worker=")) << "it has left";
    EXPECT_EQ(connect().post_json("/workers", R"({"url": ")" + a.url() + R"("})")->status, 202);
    wait([&] { return ready() == 1; });
  }
}

TEST_F(RouterTest, ARouterAsAWorkerReportsItsLoad) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b", std::ref(keeper));
  route({a.url(), b.url()});
  auto slow = std::async(std::launch::async, [&] { return post(R"({"prompt": "a"})"); });
  wait([&] { return keeper.size() == 1; });
  const std::string busy_page = get("/metrics").body;
  keeper.at(0)->respond({.body = "{}"});
  slow.get();
  Keeper kept;
  Replica one("one", std::ref(kept)), two("two", std::ref(kept));
  one.own_metrics = two.own_metrics = busy_page;
  route({one.url(), two.url()}, {.blind_wait_ms = 1});
  wait([&] { return one.pages > 1 && two.pages > 1; });
  auto answer = std::async(std::launch::async, [&] { return post(R"({"prompt": "a", "max_tokens": 1})"); });
  wait([&] { return kept.size() == 1; });
  const int before = one.pages + two.pages;
  wait([&] { return one.pages + two.pages > before + 20; });
  EXPECT_EQ(kept.size(), 1U) << "no second router computes it";
  kept.at(0)->respond({.body = "late"});
  EXPECT_EQ(answer.get().body, "late");
}

TEST_F(RouterTest, SglangsRouterAsAWorkerReportsItsLoad) {
  Replica inner("inner");
  inner.router_metrics =
      "sglang_num_running_reqs{worker_addr=\"http://a\"} "
      "4\nsglang_num_running_reqs{worker_addr=\"http://b\"} 3\n"
      "process_start_time_seconds{worker_addr=\"http://a\"} 17\n"
      "sglang_num_queue_reqs{worker_addr=\"http://a\"} 1\n";
  route({inner.url()});
  wait([&] { return inner.pages > 2; });
  const std::string workers = get("/workers").body;
  EXPECT_NE(workers.find(R"("waiting":1,"running":7)"), std::string::npos) << workers;
}

}  // namespace
}  // namespace octavo::fleet
