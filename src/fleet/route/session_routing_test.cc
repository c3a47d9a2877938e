// Tests which worker gets the requests of a session, and moves of sessions between workers.
#include <algorithm>
#include <set>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

// A worker with sessions. An export has two parts.
struct SessionWorker {
  explicit SessionWorker(std::string n)
      : name(std::move(n)),
        replica(name, [this](std::shared_ptr<http::Exchange> e) { handle(std::move(e)); }) {}

  void handle(std::shared_ptr<http::Exchange> e) {
    const http::Request& request = e->request();
    const std::lock_guard lock(mutex);
    log.push_back(request.method + " " + request.path + (request.query.empty() ? "" : "?" + request.query));
    credentials = request.headers.find("Authorization").value_or("");
    if (request.path.ends_with("/export")) {
      http::Response part{.content_type = "application/octet-stream", .body = "part " + request.query};
      if (request.query == "first=0") part.headers.add("X-Octavo-Next-Piece", next_piece);
      if (holds_exports) return held(std::move(e));
      return e->respond(std::move(part));
    }
    if (request.path.ends_with("/import")) {
      imported.push_back(request.body);
      return e->respond({.status = imports ? 200 : 400, .body = R"({"state":")" + state + R"("})"});
    }
    if (request.path == "/v1/sessions/known" && name != "b") return e->respond({.status = 404, .body = "{}"});
    if (request.path == "/v1/sessions") tenant = request.headers.find("X-Octavo-Tenant").value_or("");
    if (request.path == "/v1/sessions" && !lists) return e->respond({.status = 500, .body = "{}"});
    if (request.path == "/v1/sessions")
      return e->respond({.body = R"({"object":"list","data":[{"id":")" + name + R"("},{"id":"z)" + name +
                                 R"("}],"has_more":false})"});
    if (stays) return kept(std::move(e));
    e->respond({.body = R"({"name":")" + name + R"("})"});
  }
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex);
    return log;
  }

  std::string name;
  std::mutex mutex;
  std::vector<std::string> log, imported;
  std::string credentials, tenant;
  std::string next_piece = "5";    // header of the first part
  std::string state = "retained";  // in the answers to imports
  std::atomic<bool> stays = false, imports = true, lists = true, holds_exports = false;
  Keeper kept, held;  // turns, exports
  Replica replica;
};

class SessionRouting : public RouterTest {
 protected:
  void SetUp() override { route({a.replica.url(), b.replica.url()}); }

  std::string turn(const std::string& fields, http::Headers headers = {}) {
    return post("{" + fields + "}", std::move(headers)).body;
  }
  SessionWorker& home(const std::string& answer) { return answer == R"({"name":"a"})" ? a : b; }
  void drain(SessionWorker& worker) {
    const std::string page = get("/workers").body;
    const std::size_t url = page.find(worker.replica.url());
    const std::size_t id = page.rfind("\"id\":\"", url) + 6;
    EXPECT_EQ(connect().request("DELETE", "/workers/" + page.substr(id, page.find('"', id) - id), {})->status,
              202);
  }

  void expect_lost() {
    SessionWorker& from = home(turn(R"("session_id":"s")"));
    SessionWorker& to = &from == &a ? b : a;
    drain(from);
    EXPECT_EQ(turn(R"("session_id":"s")"), R"({"name":")" + to.name + R"("})");
    EXPECT_NE(get("/metrics").body.find("octavo_route_session_moves_total{outcome=\"lost\"} 1"),
              std::string::npos);
    EXPECT_EQ(std::ranges::count(from.seen(), std::string("DELETE /v1/sessions/s")), 0);
  }

  SessionWorker a{"a"}, b{"b"};
};

TEST_F(SessionRouting, TurnsGoToOneWorker) {
  for (const auto& [fields, headers] :
       {std::pair(std::string(R"("session_id":"s1")"), http::Headers()),
        std::pair(std::string(R"("prompt_cache_key":"s2")"), http::Headers()),
        std::pair(std::string(R"("nvext":{"session_id":"s3"})"), http::Headers()),
        std::pair(std::string(), http::Headers{{"X-Session-Id", "s4"}}),
        std::pair(std::string(), http::Headers{{"X-Claude-Code-Session-Id", "s5"}}),
        std::pair(std::string(), http::Headers{{"session_id", "s6"}})}) {
    const std::string first = turn(fields, headers);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(turn(fields, headers), first) << fields;
  }
  std::set<std::string> others;
  for (int i = 0; i < 4; ++i) others.insert(turn(R"("prompt":"x")"));
  EXPECT_EQ(others.size(), 2u) << "requests without a session take turns";
  std::set<std::string> keys;
  for (int i = 0; i < 8; ++i)
    keys.insert(turn(R"("session_id":"s1")", {{"Authorization", "Bearer " + std::to_string(i)}}));
  EXPECT_EQ(keys.size(), 2u) << "sessions of other clients are other sessions";
}

TEST_F(SessionRouting, ADrainedWorkersSessionMoves) {
  const http::Headers key{{"Authorization", "Bearer k"}};
  SessionWorker& from = home(turn(R"("session_id":"a/b")", key));
  SessionWorker& to = &from == &a ? b : a;
  drain(from);
  EXPECT_EQ(turn(R"("session_id":"a/b")", key), R"({"name":")" + to.name + R"("})");
  EXPECT_EQ(to.imported, (std::vector<std::string>{"part first=0", "part first=5"}));
  EXPECT_EQ(to.credentials, "Bearer k");
  wait([&] { return from.seen().back() == "DELETE /v1/sessions/a/b"; });
  EXPECT_EQ(to.seen().front(), "POST /v1/sessions/a/b/import");
  EXPECT_NE(get("/metrics").body.find("octavo_route_session_moves_total{outcome=\"moved\"} 1"),
            std::string::npos);
  EXPECT_EQ(turn(R"("session_id":"a/b")", key), R"({"name":")" + to.name + R"("})");
  EXPECT_EQ(to.imported.size(), 2u) << "it moves once";
}

TEST_F(SessionRouting, ATurnGoesOnWithoutItsBlocksIfTheMoveFails) {
  a.imports = b.imports = false;
  expect_lost();
}

TEST_F(SessionRouting, AnImportThatIsNotCompleteIsLost) {
  a.state = b.state = "importing";
  expect_lost();
}

TEST_F(SessionRouting, AnExportWithAnUnreadableNextPieceIsLost) {
  a.next_piece = b.next_piece = "5x";
  expect_lost();
}

TEST_F(SessionRouting, ADisconnectCancelsTheMove) {
  SessionWorker& from = home(turn(R"("session_id":"s")"));
  SessionWorker& to = &from == &a ? b : a;
  from.holds_exports = true;
  drain(from);
  {
    http::Client client = connect();
    ASSERT_TRUE(client.send("POST", "/v1/completions", R"({"session_id":"s"})"));
    wait([&] { return from.held.size() == 1; });
  }
  wait([&] { return from.held.closed == 1; });
  EXPECT_TRUE(to.imported.empty());
}

// A session of one name can have turns of two models, which different workers serve.
TEST_F(SessionRouting, EachModelOfASessionHasItsWorker) {
  for (int i = 0; i < 3; ++i)
    for (const char* name : {"a", "b"})
      EXPECT_EQ(turn(fmt::format(R"("model":"{}","session_id":"s")", name)),
                fmt::format(R"({{"name":"{}"}})", name));
}

TEST_F(SessionRouting, ClientsMayNotImport) {
  EXPECT_EQ(connect().request("POST", "/v1/sessions/s/import", "x", {})->status, 403);
  EXPECT_TRUE(a.imported.empty() && b.imported.empty());
}

TEST_F(SessionRouting, TenantsListTheirOwnSessions) {
  RouterOptions options{.api_keys = {"operator"}, .tenants = {{.name = "one", .keys = {"k1"}}}};
  options.workers.urls = {a.replica.url(), b.replica.url()};
  router_ = *Router::start(options);
  const http::Headers tenant{{"Authorization", "Bearer k1"}, {"X-Octavo-Tenant", "other"}};
  wait([&] { return connect().request("GET", "/v1/sessions", {}, tenant)->status == 200; });
  EXPECT_EQ(a.tenant, "one");
  EXPECT_EQ(a.credentials, "Bearer operator");
  EXPECT_EQ(connect().request("POST", "/v1/sessions/s/import", "x", tenant)->status, 403);
}

TEST_F(SessionRouting, TurnsWaitForTheMoveOfTheirSession) {
  SessionWorker& from = home(turn(R"("session_id":"s")"));
  SessionWorker& to = &from == &a ? b : a;
  from.holds_exports = true;
  drain(from);
  std::vector<http::Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(connect());
    ASSERT_TRUE(clients.back().send("POST", "/v1/completions", R"({"session_id":"s"})"));
  }
  wait([&] { return from.held.size() == 1; });
  from.holds_exports = false;
  from.held.at(0)->respond({.body = "whole"});
  for (http::Client& client : clients) EXPECT_EQ((*client.head_for(60'000))->status, 200);
  EXPECT_EQ(to.imported, std::vector<std::string>{"whole"}) << "one move";
}

TEST_F(SessionRouting, AFullWorkersSessionMoves) {
  SessionWorker& from = home(turn(R"("session_id":"s")"));
  SessionWorker& to = &from == &a ? b : a;
  from.stays = true;
  std::vector<http::Client> waiting;
  for (std::size_t i = 0; i < 9; ++i) {
    waiting.push_back(connect());
    ASSERT_TRUE(waiting.back().send("POST", "/v1/completions", R"({"session_id":"s"})"));
    wait([&] { return from.kept.size() == i + 1; });
  }
  EXPECT_EQ(turn(R"("session_id":"s")"), R"({"name":")" + to.name + R"("})") << "9 requests are more than 8";
  EXPECT_EQ(to.imported.size(), 2u);
  for (std::size_t i = 0; i < from.kept.size(); ++i) from.kept.at(i)->respond({.body = "{}"});
}

TEST_F(SessionRouting, RoutesOfASessionFindItsWorker) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(get("/v1/sessions/known").body, R"({"name":"b"})");
  const std::string all = get("/v1/sessions").body;
  EXPECT_NE(all.find(R"("id":"za","worker":")" + a.replica.url()), std::string::npos) << all;
  b.lists = false;
  const std::string error = R"("errors":[{"worker":")" + b.replica.url() + R"(","status":500}])";
  EXPECT_NE(get("/v1/sessions").body.find(error), std::string::npos);
  a.lists = false;
  EXPECT_EQ(get("/v1/sessions").status, 500);
  a.lists = b.lists = true;
  const std::string page = get("/v1/sessions?limit=2").body;
  EXPECT_NE(page.find(R"("has_more":true,"first_id":"a","last_id":"b")"), std::string::npos) << page;
}

TEST_F(RouterTest, AFinishedSessionNoLongerCountsAtItsWorker) {
  Replica a("a"), b("b");
  route({a.url(), b.url()}, {.policy = "sticky_least_loaded"});
  const auto home = [&](const std::string& session) {
    return post("{}", {{"X-Session-ID", session}}).body.substr(0, 1);
  };
  const std::string first = home("1");
  EXPECT_NE(home("2"), first);
  EXPECT_EQ(connect().request("POST", "/finish_session?session_id=1", "", {})->status, 200);
  EXPECT_EQ(home("3"), first);
  const http::Response unnamed = *connect().request("POST", "/finish_session", "", {});
  EXPECT_EQ(unnamed.status, 400);
  EXPECT_TRUE(unnamed.body.contains("session_id: must be in the query")) << unnamed.body;
}

}  // namespace
}  // namespace octavo::fleet
