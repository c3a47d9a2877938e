// Streams of the whole server: chunks, clients that disconnect or read slowly, and the server's shutdown.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <malloc.h>

#include <functional>
#include <thread>

#include "http/sse.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ServeTest, StreamsJoinToTheWholeAnswer) {
  const std::string text = "Grüße 🎈 an alle, und bis bald";
  for (const int step : {1, 2, 3, 7}) {
    serve([&](const Request&, int) { return Script{.tokens = ending(text), .tokens_per_step = step}; });
    const http::Response response =
        post("/v1/chat/completions",
             kChat + R"(,"stream":true,"stop":["XYZ"],"stream_options":{"include_usage":true}})");
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.content_type, HasSubstr("text/event-stream"));
    const auto all = events(response);
    ASSERT_GE(all.size(), 4U);
    EXPECT_EQ(all.back(), "[DONE]");
    std::string joined, id;
    json::value finish, usage;
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      const json::object chunk = json::parse(all[i]).as_object();
      if (i == 0) id = chunk.at("id").as_string();
      EXPECT_EQ(chunk.at("id"), json::string(id));
      EXPECT_EQ(chunk.at("object"), "chat.completion.chunk");
      if (i + 2 == all.size()) {
        EXPECT_TRUE(chunk.at("choices").as_array().empty());
        usage = chunk.at("usage");
        continue;
      }
      const json::object& choice = chunk.at("choices").as_array().at(0).as_object();
      EXPECT_EQ(choice.at("delta").as_object().contains("role"), i == 0);
      joined += choice.at("delta").at("content").as_string();
      finish = choice.at("finish_reason");
    }
    EXPECT_EQ(joined, text);
    EXPECT_EQ(finish, "stop");
    EXPECT_EQ(usage.at("completion_tokens").to_number<std::size_t>(), text.size() + 1);
    server_.reset();
  }
}

TEST_F(ServeTest, AStreamsChunksHoldAsManyTokensAsItAsks) {
  const std::string text = "abcdefghijklmnopqrstuvw";
  serve([&](const Request&, int) { return Script{.tokens = ending(text)}; },
        [](ServeOptions& options, http::ServerOptions&) { options.rules.stream_interval = 3; });
  const auto pieces = [&](const std::string& more) {
    std::vector<std::string> found;
    for (const std::string& event :
         events(post("/v1/completions", kCompletion + R"(,"stream":true,"max_tokens":50)" + more + "}")))
      if (event != "[DONE]")
        found.emplace_back(json::parse(event).at("choices").as_array().at(0).at("text").as_string());
    return found;
  };
  EXPECT_THAT(pieces(R"(,"stream_interval":5)"), ElementsAre("a", "bcdef", "ghijk", "lmnop", "qrstu", "vw"));
  EXPECT_THAT(pieces(""), ElementsAre("a", "bcd", "efg", "hij", "klm", "nop", "qrs", "tuv", "w"));
  // When a stop string ends the answer, the text of the incomplete chunk is sent.
  EXPECT_THAT(pieces(R"(,"stream_interval":50,"stop":["h"])"), ElementsAre("a", "bcdefg"));
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"stream":true,"stream_interval":0})").status, 400);
}

TEST_F(ServeTest, ADisconnectAbortsWhileNothingIsWritten) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("x"), .hang = true}; });
  for (const std::string stream : {"true", "false"}) {
    http::Client c = client();
    const std::string body = kChat + R"(,"n":2,"stream":)" + stream + "}";
    ASSERT_TRUE(c.send_raw(fmt::format(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)));
    EXPECT_TRUE(eventually([&] { return engine_->running() == 1; }));
    c.close();
    EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
  }
  EXPECT_TRUE(eventually([&] { return client().get("/load")->body == R"({"server_load":0})"; }));
}

TEST_F(ServeTest, ASlowReaderIsCutOffAndAborted) {
  serve([](const Request&,
           int) { return Script{.tokens = std::vector<TokenId>(1'000'000, 'x'), .tokens_per_step = 100}; },
        [](ServeOptions& o, http::ServerOptions& h) {
          o.rules.max_model_len = 2'000'000;
          h.stream_buffer_bytes_max = 64 << 10;
        });
  http::Client c = client();
  const std::string body = kCompletion + R"(,"max_tokens":1000000,"logprobs":20,"stream":true})";
  ASSERT_TRUE(c.send_raw(fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)));
  EXPECT_TRUE(eventually([&] { return engine_->aborts > 0; }));
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
}

TEST_F(ServeTest, AReaderThatIsLateGetsEverything) {
  serve([](const Request&,
           int) { return Script{.tokens = std::vector<TokenId>(20'000, 'x'), .tokens_per_step = 2000}; },
        [](ServeOptions& o, http::ServerOptions& h) {
          o.rules.max_model_len = 2'000'000;
          h.stream_buffer_bytes_max = 64 << 10;
        });
  http::Client c = client();
  const std::string body = kCompletion + R"(,"max_tokens":20000,"logprobs":5,"stream":true})";
  ASSERT_TRUE(c.open("POST", "/v1/completions", body).has_value());
  // the engine has finished, but the client has not read
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
  std::string all;
  for (auto piece = c.read(); piece && *piece; piece = c.read()) all += **piece;
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(engine_->aborts, 0);
}

TEST_F(ServeTest, StoppingEndsWhatRuns) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("x"), .hang = true}; });
  http::Client c = client();
  ASSERT_TRUE(c.open("POST", "/v1/chat/completions", kChat + R"(,"stream":true})").has_value());
  EXPECT_TRUE(eventually([&] { return engine_->running() == 1; }));
  server_->stop(20);
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
}

TEST_F(ServeTest, AStreamThatStoppingCutsIsTold) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("x"), .hang = true}; });
  http::Client c = client();
  ASSERT_TRUE(c.open("POST", "/v1/chat/completions", kChat + R"(,"stream":true})").has_value());
  EXPECT_TRUE(eventually([&] { return engine_->running() == 1; }));
  std::thread stopper([&] { server_->stop(20); });
  std::string all;
  for (auto piece = c.read(); piece && *piece; piece = c.read()) all += **piece;
  stopper.join();
  EXPECT_THAT(all, HasSubstr("the server is shutting down"));
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
}

TEST_F(ServeTest, IdleStreamsAreSmall) {
  constexpr int kStreams = 400;
  serve([](const Request&, int) { return Script{.tokens = bytes_of("x"), .hang = true}; });
  const std::string body = kChat + R"(,"stream":true})";
  const auto open = [&](std::vector<http::Client>& into) {
    into.push_back(client());
    ASSERT_TRUE(into.back().open("POST", "/v1/chat/completions", body).has_value());
  };
  std::vector<http::Client> clients;
  for (int i = 0; i < 50; ++i) open(clients);
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < kStreams; ++i) open(clients);
  EXPECT_TRUE(eventually([&] { return engine_->running() == kStreams + 50; }));
  const std::size_t each = (mallinfo2().uordblks - before) / kStreams;
  fmt::print("{} heap bytes for each idle stream, the test's client and fake engine included\n", each);
  RecordProperty("bytes_per_stream", static_cast<int>(each));
}

}  // namespace
}  // namespace octavo
