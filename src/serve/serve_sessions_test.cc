// Tests the routes of sessions, and the session of a request in each protocol.
#include "base/testing/eventually.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

class SessionRoutes : public ServeTest {
 protected:
  void SetUp() override {
    serve([](const Request&, int) { return Script{.tokens = ending("yes")}; });
    engine_->sessions.result = std::vector<SessionInfo>{{.key = {"anonymous", "s"},
                                                         .tokens = 64,
                                                         .length = 70,
                                                         .blocks = 4,
                                                         .pinned = true,
                                                         .ttl_s = 300,
                                                         .turns = 2}};
  }
  http::Response ask(const std::string& method, const std::string& path, const std::string& body = "",
                     http::Headers headers = {}) {
    headers.add("Content-Type", "application/json");
    return client().request(method, path, body, headers).value();
  }
  std::optional<SessionUse> session_of(const std::string& path, const std::string& body,
                                       http::Headers headers = {}) {
    const http::Response response = ask("POST", path, body, std::move(headers));
    EXPECT_EQ(response.status, 200) << response.body;
    return engine_->last_request.session;
  }
};

TEST_F(SessionRoutes, ListAndDescribe) {
  const json::object list = json::parse(ask("GET", "/v1/sessions").body).as_object();
  EXPECT_EQ(list.at("data").at(0).at("id"), "s");
  EXPECT_EQ(list.at("data").at(0).at("state"), "pinned");
  EXPECT_EQ(engine_->sessions.commands.back().key, (SessionKey{"anonymous", ""}));
  const json::object one = json::parse(ask("GET", "/v1/sessions/s").body).as_object();
  EXPECT_EQ(one.at("held_tokens"), 64);
  EXPECT_EQ(one.at("tokens"), 70);
  EXPECT_EQ(engine_->sessions.commands.back().key.id, "s");
}

TEST_F(SessionRoutes, ListsHavePages) {
  engine_->sessions.result =
      std::vector<SessionInfo>{{.key = {"anonymous", "c"}}, {.key = {"anonymous", "b"}}};
  const json::object page = json::parse(ask("GET", "/v1/sessions?limit=1&after=a%2Fb").body).as_object();
  EXPECT_EQ(engine_->sessions.commands.back().after, "a/b");
  EXPECT_EQ(engine_->sessions.commands.back().limit, 2);
  EXPECT_EQ(page.at("data").as_array().size(), 1u);
  EXPECT_EQ(page.at("last_id"), "b");
  EXPECT_EQ(page.at("has_more"), true);
  engine_->sessions.result = std::vector<SessionInfo>{{.key = {"anonymous", "b"}, .engine = 0},
                                                      {.key = {"anonymous", "c"}},
                                                      {.key = {"anonymous", "b"}, .engine = 1}};
  const json::object both = json::parse(ask("GET", "/v1/sessions?limit=1").body).as_object();
  EXPECT_EQ(both.at("data").as_array().size(), 2u) << "no page ends between equal ids";
  EXPECT_EQ(ask("GET", "/v1/sessions?limit=0").status, 400);
  EXPECT_EQ(ask("GET", "/v1/sessions?limit=1001").status, 400);
  EXPECT_EQ(ask("GET", "/v1/sessions?limit=x").status, 400);
}

TEST_F(SessionRoutes, ExportAndImportParts) {
  engine_->sessions.result = std::vector<SessionInfo>{{.part = "bytes", .next_piece = 7}};
  const http::Response part = ask("GET", "/v1/sessions/s/export?first=3");
  EXPECT_EQ(part.body, "bytes");
  EXPECT_EQ(part.content_type, "application/octet-stream");
  EXPECT_EQ(part.headers.find("X-Octavo-Next-Piece"), "7");
  EXPECT_EQ(engine_->sessions.commands.back().verb, SessionVerb::export_part);
  EXPECT_EQ(engine_->sessions.commands.back().first, 3);
  engine_->sessions.result = std::vector<SessionInfo>{{.part = "last"}};
  EXPECT_EQ(ask("GET", "/v1/sessions/s/export").headers.find("X-Octavo-Next-Piece"), std::nullopt);
  EXPECT_EQ(ask("GET", "/v1/sessions/s/export?first=-1").status, 400);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/export").status, 405);
  const http::Response refused = ask("POST", "/v1/sessions/s/import", "part");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("--enable-session-import"), std::string::npos);
  EXPECT_EQ(engine_->sessions.commands.back().verb, SessionVerb::export_part);
}

TEST_F(SessionRoutes, CommandsAboveTheLimitAreRefused) {
  engine_->sessions.waits = true;
  std::vector<http::Client> waiting;
  for (int i = 0; i < 256; ++i) {
    waiting.push_back(client());
    ASSERT_TRUE(waiting.back().send("POST", "/v1/sessions/s/demote"));
  }
  const auto all_wait = [&] {
    const std::lock_guard lock(engine_->mutex_of_sessions());
    return engine_->sessions.open.size() == 256;
  };
  EXPECT_TRUE(eventually(all_wait));
  const http::Response refused = ask("GET", "/v1/sessions/s");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("256 commands"), std::string::npos) << refused.body;
  for (const SessionsDone& done : std::exchange(engine_->sessions.open, {})) done(engine_->sessions.result);
  for (http::Client& each : waiting) EXPECT_EQ((*each.head_for(60'000))->status, 200);
  engine_->sessions.waits = false;
  EXPECT_EQ(ask("GET", "/v1/sessions/s").status, 200);
}

TEST_F(SessionRoutes, UnreadExportsCountInTheBudgetOfBodies) {
  serve([](const Request&, int) { return Script{.tokens = ending("yes")}; },
        [](ServeOptions&, http::ServerOptions& http) {
          http.bodies_bytes_max = 84 << 20;
        });  // half for exports
  // larger than the buffers of a socket
  engine_->sessions.result = std::vector<SessionInfo>{{.part = std::string(40 << 20, 'x')}};
  http::Client slow = client();
  ASSERT_TRUE(slow.send("GET", "/v1/sessions/s/export"));
  EXPECT_EQ((*slow.head_for(60'000))->status, 200);
  const http::Response refused = ask("GET", "/v1/sessions/s/export");
  EXPECT_EQ(refused.status, 503) << "the first client has not read its part";
  EXPECT_NE(refused.body.find("42 MiB"), std::string::npos) << refused.body;
  slow = client();  // closes the connection
  EXPECT_TRUE(eventually([&] { return ask("GET", "/v1/sessions/s/export").status == 200; }));
  engine_->sessions.result = std::vector<SessionInfo>{{.part = std::string(43 << 20, 'x')}};
  EXPECT_EQ(ask("GET", "/v1/sessions/s/export").status, 503);
}

TEST_F(SessionRoutes, SendTheVerbs) {
  const auto last = [&] { return engine_->sessions.commands.back(); };
  EXPECT_EQ(ask("POST", "/v1/sessions/a%2Fb/pin", R"({"ttl_seconds": 60})").status, 200);
  EXPECT_EQ(last().verb, SessionVerb::pin);
  EXPECT_EQ(last().key.id, "a/b");
  EXPECT_EQ(last().ttl_s, 60);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/retain").status, 200);
  EXPECT_EQ(last().verb, SessionVerb::retain);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/demote").status, 200);
  EXPECT_EQ(last().verb, SessionVerb::demote);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/release").status, 200);
  EXPECT_EQ(last().verb, SessionVerb::release);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/s").status, 200);
  EXPECT_EQ(last().verb, SessionVerb::release);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/fork", R"({"session_id": "t"})").status, 200);
  EXPECT_EQ(last().verb, SessionVerb::fork);
  EXPECT_EQ(last().fork_id, "t");
}

TEST_F(SessionRoutes, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(ask("POST", "/v1/sessions/s/fork", "{}").status, 400);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/pin", R"({"ttl_seconds": 0})").status, 400);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/pin", R"({"other": 1})").status, 400);
  const http::Response refused = ask("DELETE", "/v1/sessions");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers.find("Allow"), "GET, HEAD");
  engine_->sessions.result = failure(ErrorCode::not_found, "no session");
  EXPECT_EQ(ask("GET", "/v1/sessions/x").status, 404);
  engine_->sessions.result = failure(ErrorCode::resource_exhausted, "quota");
  EXPECT_EQ(ask("POST", "/v1/sessions/x/pin").status, 429);
}

TEST_F(SessionRoutes, APrefillComputesThePromptOnly) {
  const http::Response chat =
      ask("POST", "/v1/sessions/s/prefill",
          R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":50,"stream":true})");
  ASSERT_EQ(chat.status, 200) << chat.body;
  const json::object reply = json::parse(chat.body).as_object();
  EXPECT_EQ(reply.at("object"), "session.prefill");
  EXPECT_EQ(reply.at("usage").at("completion_tokens"), 0);
  EXPECT_EQ(engine_->last_request.sampling.max_tokens, 1);
  EXPECT_EQ(engine_->last_request.session->key.id, "s");
  EXPECT_EQ(tokenizer_.decode(engine_->last_request.prompt, false).value(), "user: Hi\n")
      << "no generation prompt";
  EXPECT_EQ(ask("POST", "/v1/sessions/s/prefill", R"({"prompt":"Once"})").status, 200);
  EXPECT_EQ(ask("POST", "/v1/sessions/s/prefill", "{}").status, 400);
}

TEST_F(SessionRoutes, EachProtocolNamesTheSession) {
  EXPECT_EQ(session_of("/v1/completions", R"({"prompt":"x"})"), std::nullopt);
  EXPECT_EQ(session_of("/v1/completions", R"({"prompt":"x","session_id":"a"})")->key,
            (SessionKey{"anonymous", "a"}));
  EXPECT_EQ(session_of("/v1/chat/completions", kChat + R"(,"prompt_cache_key":"b"})")->key.id, "b");
  EXPECT_EQ(session_of("/v1/chat/completions", kChat + "}", {{"X-Session-Id", "c"}})->key.id, "c");
  EXPECT_EQ(
      session_of("/v1/chat/completions", kChat + R"(,"session_id":"d"})", {{"X-Session-Id", "c"}})->key.id,
      "d");
  EXPECT_EQ(session_of("/v1/responses", R"({"input":"x","prompt_cache_key":"e"})")->key.id, "e");
  EXPECT_EQ(session_of("/v1/responses", R"({"input":"x"})", {{"session_id", "f"}})->key.id, "f");
  EXPECT_EQ(session_of("/v1/chat/completions", kChat + R"(,"nvext":{"agent_hints":{"priority":2}}})"),
            std::nullopt)
      << "hints without a session name have no effect";
  EXPECT_EQ(
      ask("POST", "/v1/chat/completions", kChat + "}", {{"X-Session-Id", std::string(300, 'x')}}).status,
      400);
}

TEST_F(SessionRoutes, AnthropicsCacheControlNamesTheConversation) {
  const auto messages = [&](const std::string& text, const std::string& more = "") {
    return session_of(
        "/v1/messages",
        R"({"model":"demo","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":")" +
            text + R"(","cache_control":{"type":"ephemeral","ttl":"1h"}}]})" + more + "]}");
  };
  const auto first = messages("Hi");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ttl_s, 3600);
  const auto second =
      messages("Hi", R"(,{"role":"assistant","content":"yes"},{"role":"user","content":"more"})");
  EXPECT_EQ(second->key, first->key);
  EXPECT_NE(messages("Hello")->key, first->key);
  const http::Response wrong = ask(
      "POST", "/v1/messages",
      R"({"model":"demo","max_tokens":5,"system":[{"type":"text","text":"s","cache_control":{"type":"x"}}],
                                       "messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.body.find("system[0].cache_control.type"), std::string::npos) << wrong.body;
}

// Clients put the breakpoint (cache_control) on the newest message. So in later turns, the first message has
// none.
TEST_F(SessionRoutes, AMovedBreakpointDoesNotChangeTheDerivedName) {
  const auto name_of = [&](const std::string& system, const std::string& content, http::Headers headers = {},
                           const std::string& fields = "") {
    return session_of("/v1/messages",
                      R"({"model":"demo","max_tokens":5,"cache_control":{"type":"ephemeral"},"system":)" +
                          system + R"(,"messages":[{"role":"user","content":)" + content + "}]" + fields +
                          "}",
                      std::move(headers))
        ->key.id;
  };
  const std::string with = R"([{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}])";
  const std::string without = R"([{"type":"text","text":"Hi"}])";
  const std::string name = name_of(R"("s")", with);
  EXPECT_EQ(name.substr(0, 6), "cache-");
  EXPECT_EQ(name_of(R"("s")", without), name);
  EXPECT_EQ(name_of(R"("s")", R"("Hi")"), name);
  EXPECT_EQ(name_of(R"([{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}])", without), name);
  EXPECT_NE(name_of(R"("other")", without), name);
  EXPECT_EQ(name_of(R"("s")", with, {{"X-Claude-Code-Session-Id", "code"}}), "code");
  EXPECT_EQ(name_of(R"("s")", with, {}, R"(,"nvext":{"session_id":"n"})"), "n");
}

TEST_F(SessionRoutes, TenantsHaveSeparateSessions) {
  serve([](const Request&, int) { return Script{.tokens = ending("yes")}; },
        [](ServeOptions& o, http::ServerOptions&) { o.access.client_header = "X-Tenant"; });
  const std::string body = R"({"prompt":"x","session_id":"s"})";
  const auto a = session_of("/v1/completions", body, {{"X-Tenant", "a"}});
  const auto b = session_of("/v1/completions", body, {{"X-Tenant", "b"}});
  EXPECT_EQ(a->key.id, b->key.id);
  EXPECT_NE(a->key.owner, b->key.owner);
  ask("GET", "/v1/sessions", "", {{"X-Tenant", "a"}});
  EXPECT_EQ(engine_->sessions.commands.back().key.owner, a->key.owner);
}

TEST_F(SessionRoutes, UsageAndMetricsReportTheSession) {
  const json::object plain = reply("/v1/completions", R"({"prompt":"x"})");
  EXPECT_FALSE(plain.at("usage").as_object().contains("prompt_tokens_details"));
  const json::object named = reply("/v1/completions", R"({"prompt":"abcd","session_id":"s"})");
  const json::object& details = named.at("usage").at("prompt_tokens_details").as_object();
  EXPECT_EQ(details.at("cached_tokens"), 0);
  EXPECT_EQ(details.at("cache_creation_input_tokens"), 4);
  const json::object message = reply(
      "/v1/messages",
      R"({"model":"demo","max_tokens":5,"session_id":"s","messages":[{"role":"user","content":"Hi"}]})");
  const json::object& usage = message.at("usage").as_object();
  EXPECT_GT(usage.at("cache_creation_input_tokens").as_int64(), 0);
  EXPECT_EQ(usage.at("input_tokens"), 0);
  EXPECT_NE(metric("octavo:session_turns_total"), "");
}

}  // namespace
}  // namespace octavo
