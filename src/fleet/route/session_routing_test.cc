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
      if (request.query == "first=0") part.headers.add("X-Octavo-Next-Piece", "5");
      return e->respond(std::move(part));
    }
    if (request.path.ends_with("/import")) {
      imported.push_back(request.body);
      return e->respond({.status = imports ? 200 : 400, .body = "{}"});
    }
    if (request.path == "/v1/sessions/known" && name != "b") return e->respond({.status = 404, .body = "{}"});
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
  std::string credentials;
  std::atomic<bool> stays = false, imports = true;
  Keeper kept;
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
  SessionWorker& from = home(turn(R"("session_id":"s")"));
  SessionWorker& to = &from == &a ? b : a;
  to.imports = false;
  drain(from);
  EXPECT_EQ(turn(R"("session_id":"s")"), R"({"name":")" + to.name + R"("})");
  EXPECT_NE(get("/metrics").body.find("octavo_route_session_moves_total{outcome=\"lost\"} 1"),
            std::string::npos);
  EXPECT_EQ(std::ranges::count(from.seen(), std::string("DELETE /v1/sessions/s")), 0);
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
  const std::string page = get("/v1/sessions?limit=2").body;
  EXPECT_NE(page.find(R"("has_more":true,"first_id":"a","last_id":"b")"), std::string::npos) << page;
}

}  // namespace
}  // namespace octavo::fleet
