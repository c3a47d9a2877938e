// Tests streams of background responses with the whole server.
#include <gmock/gmock.h>

#include "serve/openai/event_log.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class BackgroundStreamTest : public ServeTest {
 protected:
  static constexpr std::string_view kBody =
      R"({"model":"demo","input":"Hi","background":true,"stream":true})";

  http::Client open(const std::string& method, const std::string& path, std::string_view body = {}) {
    http::Client reader = client();
    EXPECT_EQ(
        reader.open(method, path, std::string(body), {{"Content-Type", "application/json"}}).value().status,
        200);
    return reader;
  }
  // Reads until the text has arrived, or to the end.
  static std::string read_to(http::Client& reader, std::string_view text) {
    std::string all;
    while (!all.contains(text)) {
      const auto piece = reader.read().value();
      if (!piece) break;
      all += *piece;
    }
    return all;
  }
  static std::vector<json::object> parsed(const std::string& text) {
    http::SseReader reader;
    std::vector<json::object> all;
    for (const std::string& event : reader.push(text)) all.push_back(json::parse(event).as_object());
    return all;
  }
  static std::string path_of(const json::object& created) {
    return "/v1/responses/" + std::string(created.at("response").at("id").as_string());
  }
};

TEST_F(BackgroundStreamTest, AStreamIsReadAgainFromAnyEvent) {
  serve_text("Hello");
  const std::string first = post("/v1/responses", std::string(kBody)).body;
  const std::vector<json::object> events = parsed(first);
  EXPECT_EQ(events.back().at("type"), "response.completed");
  const std::string path = path_of(events.front());
  EXPECT_EQ(client().get(path + "?stream=true")->body, first);
  const std::string rest = client().get(path + "?stream=true&starting_after=2")->body;
  EXPECT_THAT(first, EndsWith(rest));
  EXPECT_EQ(parsed(rest).front().at("sequence_number"), 3);
  EXPECT_EQ(client().get(path + "?stream=true&starting_after=1000")->body, "");
  for (const char* wrong : {"-1", "x", "99999999999"})
    EXPECT_THAT(client().get(path + "?stream=true&starting_after=" + wrong)->body,
                HasSubstr("starting_after"));
  EXPECT_EQ(json::parse(client().get(path)->body).at("status"), "completed");
}

TEST_F(BackgroundStreamTest, AClientReturnsToTheRunningStream) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("abc"), .hang = true}; });
  http::Client first = open("POST", "/v1/responses", kBody);
  const std::string begun = read_to(first, R"("delta":"c")");
  const std::string path = path_of(parsed(begun).front());
  first.close();
  http::Client second = open("GET", path + "?stream=true&starting_after=1");
  std::string rest = read_to(second, R"("delta":"c")");
  EXPECT_EQ(parsed(rest).front().at("sequence_number"), 2);
  EXPECT_EQ(engine_->running(), 1);
  EXPECT_EQ(json::parse(post(path + "/cancel", "").body).at("status"), "cancelled");
  rest = read_to(second, "no such text");
  EXPECT_EQ(parsed(rest).back().at("type"), "response.incomplete");
  EXPECT_EQ(parsed(rest).back().at("response").at("status"), "cancelled");
}

TEST_F(BackgroundStreamTest, AnErrorBeforeTheFirstEventSetsTheStatus) {
  serve_text("Hello");
  engine_->refusal_code = ErrorCode::resource_exhausted;
  EXPECT_EQ(post("/v1/responses", std::string(kBody)).status, 429);
}

// An exchange that keeps what it gets.
struct ReadExchange final : http::Exchange {
  ReadExchange() : Exchange(http::Request{}) {}
  void respond(http::Response) override {}
  void start_stream(http::Response) override {}
  bool write(std::string_view piece) override {
    text += piece;
    return true;
  }
  bool wait_writable(std::function<void()> resume) override {
    waiting = full ? std::move(resume) : nullptr;
    return full;
  }
  void finish() override { finished = true; }
  void on_close(std::function<void(http::CloseReason)>) override {}

  std::string text;
  std::function<void()> waiting;
  bool full = false, finished = false;
};

openai::EventLog::Counter counter(std::size_t bytes = 0) {
  return std::make_shared<std::atomic<std::size_t>>(bytes);
}

TEST(EventLog, LogsThatAreWrittenHaveOneLimit) {
  const auto written = counter(openai::EventLog::kWrittenBytesMax - 100);
  const auto client = std::make_shared<ReadExchange>();
  const std::string event = "event: a\ndata: " + std::string(60, '0') + "\n\n";
  auto one = std::make_shared<openai::EventLog>(client, written);
  const auto other = std::make_shared<openai::EventLog>(client, written);
  EXPECT_TRUE(one->write(event));
  EXPECT_FALSE(other->write(event));
  one->finish();
  EXPECT_TRUE(other->write(event));
  EXPECT_FALSE(std::make_shared<openai::EventLog>(client, written)->write(event));
  other->cut();
  EXPECT_EQ(*written, openai::EventLog::kWrittenBytesMax - 100);
}

TEST(EventLog, ASlowReaderDelaysNobody) {
  const auto slow = std::make_shared<ReadExchange>(), fast = std::make_shared<ReadExchange>();
  const auto log = std::make_shared<openai::EventLog>(slow, counter());
  slow->full = true;
  log->start_stream({});
  log->send_to(fast, -1);
  EXPECT_TRUE(log->write("event: a\ndata: 0\n\nevent: b\ndata: 1\n\n"));
  EXPECT_TRUE(log->write("event: c\ndata: 2\n\n"));
  log->finish();
  EXPECT_EQ(fast->text, "event: a\ndata: 0\n\nevent: b\ndata: 1\n\nevent: c\ndata: 2\n\n");
  EXPECT_TRUE(fast->finished);
  EXPECT_FALSE(slow->finished);
  slow->full = false;
  slow->waiting();
  EXPECT_EQ(slow->text, fast->text);
  EXPECT_TRUE(slow->finished);
  const auto late = std::make_shared<ReadExchange>();
  log->send_to(late, 1);
  EXPECT_EQ(late->text, "event: c\ndata: 2\n\n");
  EXPECT_TRUE(late->finished);
  EXPECT_FALSE(log->write(std::string(openai::EventLog::kBytesMax, 'x')));
}

}  // namespace
}  // namespace octavo
