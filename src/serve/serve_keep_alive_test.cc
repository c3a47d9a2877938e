// Keep-alives in streams that have no output for some time, with the whole server.
#include <gmock/gmock.h>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSilenceUs = 2'000;
const std::string kMessage = R"({"model":"demo","max_tokens":9,"messages":[{"role":"user","content":"Hi"}])";

class KeepAliveTest : public ServeTest {
 protected:
  // Emits a token every step_us microseconds, or no token if the text is empty.
  void serve_slowly(std::string text, int step_us) {
    serve([text](const Request&,
                 int) { return text.empty() ? Script{.hang = true} : Script{.tokens = ending(text)}; },
          [](ServeOptions& options, http::ServerOptions&) { options.keep_alive_us = kSilenceUs; }, step_us);
  }
  // Reads a stream until `text` has occurred `times` times, and returns its bytes.
  std::string begin_of(const std::string& path, const std::string& body, const std::string& text, int times) {
    http::Client reader = client();
    EXPECT_EQ(reader.open("POST", path, body).value().status, 200);
    std::string all;
    const auto count = [&] {
      int found = 0;
      for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
      return found;
    };
    while (count() < times) all += reader.read().value().value();
    return all;
  }
};

TEST_F(KeepAliveTest, AStreamThatWaitsSaysSoInItsProtocol) {
  serve_slowly("", 0);
  const std::string chat =
      begin_of("/v1/chat/completions", kChat + R"(,"stream":true})", ": keep-alive\n\n", 2);
  EXPECT_TRUE(chat.starts_with(": keep-alive\n\n: keep-alive\n\n")) << chat;
  const std::string messages = begin_of("/v1/messages", kMessage + R"(,"stream":true})", "event: ping\n", 2);
  EXPECT_TRUE(messages.starts_with("event: message_start\n")) << messages;
  EXPECT_EQ(messages.rfind("message_start\n"), messages.find("message_start\n")) << "once";
  const std::string responses =
      begin_of("/v1/responses", R"({"input":"Hi","stream":true})", "in_progress\ndata", 3);
  EXPECT_TRUE(responses.starts_with("event: response.created\n")) << responses;
  EXPECT_THAT(responses, HasSubstr(R"("sequence_number":3)"));
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; })) << "a client that leaves is noticed";
}

TEST_F(KeepAliveTest, TheAnswerComesWhole) {
  serve_slowly("Hey", 20'000);
  const http::Response chat = post("/v1/chat/completions", kChat + R"(,"stream":true})");
  EXPECT_THAT(chat.body, HasSubstr(": keep-alive\n\n"));
  std::string text;
  for (const std::string& event : events(chat))
    if (event != "[DONE]")
      if (const json::value chunk = json::parse(event);
          chunk.at("choices").at(0).at("delta").as_object().contains("content"))
        text += chunk.at("choices").at(0).at("delta").at("content").as_string();
  EXPECT_EQ(text, "Hey");

  std::vector<std::string> types;
  int sequence = 0;
  for (const std::string& event : events(post("/v1/responses", R"({"input":"Hi","stream":true})"))) {
    const json::value got = json::parse(event);
    EXPECT_EQ(got.at("sequence_number"), sequence++);
    types.emplace_back(got.at("type").as_string());
  }
  EXPECT_EQ(std::ranges::count(types, "response.created"), 1);
  EXPECT_EQ(types.back(), "response.completed");
}

TEST_F(KeepAliveTest, AnErrorAfterItIsAnEvent) {
  serve_slowly("", 0);
  const http::Response late = post("/v1/completions", R"({"prompt":"x","stream":true,"timeout":4})");
  EXPECT_EQ(late.status, 200);
  EXPECT_TRUE(late.body.starts_with(": keep-alive\n\n")) << late.body;
  EXPECT_THAT(late.body, HasSubstr("timeout: the time limit of 4 s is over"));
  EXPECT_EQ(events(late).back(), "[DONE]");
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"x","timeout":0.05})").status, 503) << "no stream";
}

}  // namespace
}  // namespace octavo
