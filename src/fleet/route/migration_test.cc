#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <set>

#include "fleet/route/test_router.h"
#include "http/sse.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Workers that stream "abc" token by token, beginning after the tokens to resume. The first `dies` of them
// fail after their next token.
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
      if (breaks) return;  // without finish(), the stream breaks
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
  // Returns the texts of a stream's events, and its last event or error.
  std::string stream_through(Sayers& sayers, int limit) {
    Replica a("a", std::ref(sayers)), b("b", std::ref(sayers));
    route({a.url(), b.url()},
          {.retry = {.migration_limit = limit}, .health = {.breaker = {.enabled = false}}});
    return stream();
  }
  std::string stream() {
    http::Client client = connect();
    EXPECT_TRUE(client.open("POST", "/v1/completions", R"({"prompt":"a","stream":true})"));
    http::SseReader reader;
    std::string text;
    std::set<std::string> ids;
    Result<std::optional<std::string>> piece;
    while ((piece = client.read()) && *piece)
      for (const std::string& event : reader.push(**piece)) {
        if (event == "[DONE]") {
          text += "!";
          continue;
        }
        const json::object chunk = json::parse(event).as_object();
        if (chunk.contains("error")) {
          text += "?";
          continue;
        }
        ids.emplace(chunk.at("id").as_string());
        const json::object& choice = chunk.at("choices").at(0).as_object();
        EXPECT_FALSE(choice.contains("token_ids"));
        text += choice.at("text").as_string();
      }
    EXPECT_EQ(piece.has_value(), text.ends_with("!")) << "the answer is only complete when it says so";
    EXPECT_EQ(ids.size(), 1U);
    return text;
  }
  bool counted(std::string_view line) { return get("/metrics").body.find(line) != std::string::npos; }
};

TEST_F(MigrationTest, AStreamThatBreaksGoesOnElsewhere) {
  Sayers sayers(2);
  EXPECT_EQ(stream_through(sayers, 3), "abc!");
  EXPECT_TRUE(counted("octavo_route_migrations_total{outcome=\"continued\"} 2\n"));
  EXPECT_FALSE(counted("outcome=\"failed\""));
}

TEST_F(MigrationTest, WithoutMigrationNoneFails) {
  Replica a("a", [](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: {}\n\n");  // without finish(), the stream breaks
  });
  route({a.url()});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", R"({"prompt":"a","stream":true})"));
  std::string text;
  Result<std::optional<std::string>> piece;
  while ((piece = client.read()) && *piece) text += **piece;
  EXPECT_TRUE(text.contains("error")) << text;
  EXPECT_FALSE(counted("octavo_route_migrations_total{"));
}

TEST_F(MigrationTest, AsOftenAsAllowed) {
  Sayers sayers(3);
  EXPECT_EQ(stream_through(sayers, 1), "ab?");
  EXPECT_TRUE(counted("octavo_route_migrations_total{outcome=\"failed\"} 1\n"));
}

TEST_F(MigrationTest, AStreamThatBreaksEverywhereSpeaksAgainstItself) {
  Sayers breaks(1000);
  Replica a("a", std::ref(breaks)), b("b", std::ref(breaks));
  route({a.url(), b.url()},
        {.retry = {.migration_limit = 2}, .health = {.breaker = {.failure_threshold = 4}}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream(), "abc?");
  EXPECT_EQ(ready(), 2U) << "one failure for each stream, not three";
}

TEST_F(MigrationTest, AReplicaWhoseStreamsOthersContinueIsLeftOut) {
  Sayers breaks(1000), goes_on(0);
  Replica a("a", std::ref(breaks)), b("b", std::ref(goes_on));
  route({a.url(), b.url()},
        {.retry = {.migration_limit = 3}, .health = {.breaker = {.failure_threshold = 2}}});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(stream(), "abc!");
  EXPECT_EQ(a.requests, 2);
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
  route({a.url(), b.url(), c.url()},
        {.retry = {.migration_limit = 3}, .health = {.breaker = {.enabled = false}}});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(stream(), "abc!");
  EXPECT_GT(in_vain, 0);
}

// Servers other than `octavo serve` may omit [DONE], and the empty line after the last event.
TEST_F(MigrationTest, AStreamThatEndsWithoutSayingSoIsComplete) {
  Replica a("a", [](auto e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: {\"id\":\"x\"}\n\ndata: {\"id\":\"y\"}");
    e->finish();
  });
  route({a.url()}, {.retry = {.migration_limit = 3}});
  http::Client client = connect();
  ASSERT_TRUE(client.open("POST", "/v1/completions", R"({"prompt":"a","stream":true})"));
  std::string text;
  Result<std::optional<std::string>> piece;
  while ((piece = client.read()) && *piece) text += **piece;
  EXPECT_TRUE(piece) << "a proper end";
  EXPECT_EQ(text, "data: {\"id\":\"x\"}\n\ndata: {\"id\":\"y\"}");
  EXPECT_EQ(a.requests, 1);
}

}  // namespace
}  // namespace octavo::fleet
