// Tests the web page and its live view of the engine over HTTP.
#include <gmock/gmock.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const http::Headers kKey = {{"Authorization", "Bearer secret"}};

void require_key(ServeOptions& options, http::ServerOptions&) { options.access.api_keys = {"secret"}; }

TEST_F(ServeTest, PageComesFromTheBinary) {
  serve_text("x");
  const http::Response page = client().get("/").value();
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.content_type, HasSubstr("text/html"));
  EXPECT_THAT(page.body, HasSubstr("<div id=\"app\">"));
  EXPECT_THAT(page.body, HasSubstr("Content-Security-Policy"));
  EXPECT_THAT(page.body, Not(HasSubstr("src=\"http")));
  EXPECT_LT(page.body.size(), 200'000U);
}

TEST_F(ServeTest, PageCanBeOff) {
  serve({}, [](ServeOptions& options, http::ServerOptions&) { options.features.page = false; });
  EXPECT_EQ(client().get("/").value().status, 404);
}

TEST_F(ServeTest, PageIsBehindTheKey) {
  serve({}, require_key);
  const http::Response login = client().get("/").value();
  EXPECT_EQ(login.status, 401);
  EXPECT_THAT(login.body, HasSubstr("API key"));
  EXPECT_THAT(login.body, Not(HasSubstr("<div id=\"app\">")));
  EXPECT_THAT(client().request("GET", "/", {}, kKey).value().body, HasSubstr("<div id=\"app\">"));
  EXPECT_EQ(client().get("/octavo/live").value().status, 401);
}

std::vector<json::object> read_events(http::Client& client, std::size_t count) {
  http::SseReader reader;
  std::vector<json::object> events;
  while (events.size() < count) {
    const auto bytes = client.read().value();
    if (!bytes) break;
    for (const std::string& event : reader.push(*bytes)) events.push_back(json::parse(event).as_object());
  }
  return events;
}

TEST_F(ServeTest, LiveStreamTellsOfTheEngine) {
  serve_text("Hello");
  reply("/v1/completions", kCompletion + "}");
  http::Client watcher = client();
  EXPECT_EQ(watcher.open("GET", "/octavo/live").value().status, 200);
  const std::vector<json::object> events = read_events(watcher, 2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("blocks").at("total"), 100);
  EXPECT_EQ(events[0].at("running"), 0);
  std::int64_t first_tokens = 0;
  for (const json::value& count : events[0].at("ttft").at("counts").as_array()) first_tokens += count.as_int64();
  EXPECT_EQ(first_tokens, 1);
  EXPECT_GT(events[1].at("time").as_double(), events[0].at("time").as_double());
}

TEST_F(ServeTest, WatchersDoNotHoldTheServerUp) {
  serve_text("Hello");
  http::Client watcher = client();
  EXPECT_EQ(watcher.open("GET", "/octavo/live").value().status, 200);
  const auto began = std::chrono::steady_clock::now();
  server_->stop(60'000);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
  while (watcher.read().value()) {
  }  // until the stream ends (without an error)
}

TEST_F(ServeTest, WatchersAreLimited) {
  serve_text("Hello");
  std::vector<http::Client> watchers;
  int status = 200;
  for (int i = 0; i < 65 && status == 200; ++i) {
    watchers.push_back(client());
    status = watchers.back().open("GET", "/octavo/live").value().status;
  }
  EXPECT_EQ(watchers.size(), 65U);
  EXPECT_EQ(status, 503);
}

}  // namespace
}  // namespace octavo
