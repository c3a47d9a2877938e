// Streams that continue after tokens that a client already has. A stream is cut at every position; both
// halves together must give the whole answer.
#include <gmock/gmock.h>

#include "grammar/tool_dialect.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using testing::HasSubstr;

class ResumeTest : public ServeTest {
 protected:
  // Serves `text` with an engine that continues after the tokens in answers_so_far.
  void serve_on(const std::string& text, int tokens_per_step = 1) {
    serve(
        [text, tokens_per_step](const Request& request, int) {
          std::vector<TokenId> tokens = ending(text);
          if (!request.answers_so_far.empty()) {
            const std::vector<TokenId>& got = request.answers_so_far.front().tokens;
            EXPECT_TRUE(std::equal(got.begin(), got.end(), tokens.begin()));
            tokens.erase(tokens.begin(), tokens.begin() + std::ssize(got));
          }
          const auto left =
              static_cast<std::size_t>(*request.sampling.max_tokens) - (ending(text).size() - tokens.size());
          if (tokens.size() <= left)
            return Script{.tokens = std::move(tokens), .tokens_per_step = tokens_per_step};
          tokens.resize(left);
          return Script{
              .tokens = std::move(tokens), .end = FinishReason::length, .tokens_per_step = tokens_per_step};
        },
        [](ServeOptions& options, http::ServerOptions&) {
          options.rules.reasoning = openai::ReasoningRule{.begin = '{', .end = '}', .from_start = false};
          options.rules.tool_dialect = grammar::tool_dialect("hermes");
        });
  }

  // Returns the events without ids, which differ between answers.
  static std::vector<std::string> got(const std::vector<std::string>& events) {
    std::vector<std::string> out;
    for (const std::string& event : events) {
      if (event == "[DONE]") continue;
      json::object chunk = json::parse(event).as_object();
      for (const char* name : {"id", "created"}) chunk.erase(name);
      for (json::value& choice : chunk.at("choices").as_array()) {
        choice.as_object().erase("weight_versions");  // contains token positions, which differ between the
                                                      // halves
        if (choice.as_object().contains("delta") && choice.at("delta").as_object().contains("tool_calls"))
          for (json::value& call : choice.at("delta").at("tool_calls").as_array())
            call.as_object().erase("id");
      }
      out.push_back(json::serialize(chunk));
    }
    return out;
  }

  void cut_everywhere(const std::string& path, const std::string& body) {
    const std::string requested =
        body + R"(,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true)";
    const std::vector<std::string> whole = events(post(path, requested + "}"));
    const std::vector<std::string> expected = got(whole);
    json::array tokens;
    for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) {
      const json::value choice = json::parse(whole[cut]).at("choices").at(0);
      if (!choice.at("finish_reason").is_null()) break;
      if (choice.as_object().contains("token_ids"))
        for (const json::value& id : choice.at("token_ids").as_array()) tokens.push_back(id);
      const http::Response rest =
          post(path, requested + R"(,"resume_token_ids":)" + json::serialize(tokens) + "}");
      ASSERT_EQ(rest.status, 200) << rest.body;
      EXPECT_EQ(rest.headers.find("X-Octavo-Resumed"), std::to_string(tokens.size()));
      EXPECT_EQ(got(events(rest)),
                std::vector(expected.begin() + static_cast<std::ptrdiff_t>(cut) + 1, expected.end()))
          << "behind event " << cut;
    }
    EXPECT_GE(tokens.size(), 3U);
  }

  void cut_after_each_step(const std::string& path, const std::string& body);
};

// Returns the events without the fields that differ between two answers.
std::vector<std::string> comparable(const std::vector<std::string>& events) {
  std::vector<std::string> out;
  for (const std::string& text : events) {
    json::object event = json::parse(text).as_object();
    event.erase("sequence_number");
    if (json::value* response = event.if_contains("response")) response->as_object().erase("created_at");
    if (json::value* block = event.if_contains("content_block")) block->as_object().erase("id");
    out.push_back(json::serialize(event));
  }
  return out;
}

// Cuts a stream with named events after each step of the engine. The last event of a step has token_ids.
void ResumeTest::cut_after_each_step(const std::string& path, const std::string& body) {
  const std::string requested = body + R"(,"stream":true,"return_token_ids":true)";
  const std::vector<std::string> whole = events(post(path, requested + "}"));
  const std::vector<std::string> expected = comparable(whole);
  json::array tokens;
  int steps = 0;
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    const json::object event = json::parse(whole[i]).as_object();
    if (!event.contains("token_ids")) continue;
    for (const json::value& id : event.at("token_ids").as_array()) tokens.push_back(id);
    const http::Response rest =
        post(path, requested + R"(,"resume_token_ids":)" + json::serialize(tokens) + "}");
    ASSERT_EQ(rest.status, 200) << rest.body;
    EXPECT_EQ(comparable(events(rest)),
              std::vector(expected.begin() + static_cast<std::ptrdiff_t>(i) + 1, expected.end()))
        << "after event " << i;
    ++steps;
  }
  EXPECT_GE(steps, 4);
  EXPECT_GE(tokens.size(), 4U);
}

TEST_F(ResumeTest, EventsWithNames) {
  serve_on(
      "{I think}h\xC3\xA9. <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>XY XYZ!");
  const std::string message =
      R"({"model":"demo","max_tokens":120,"messages":[{"role":"user","content":"Hi"}])";
  const std::string response = R"({"model":"demo","max_output_tokens":120,"input":"Hi","request_id":"r")";
  cut_after_each_step("/v1/messages", message + R"(,"stop_sequences":["XYZ"])");
  cut_after_each_step("/v1/messages", message + R"(,"tools":[{"name":"f","input_schema":{}}])");
  cut_after_each_step("/v1/responses", response);
  cut_after_each_step("/v1/responses",
                      response + R"(,"tools":[{"type":"function","name":"f","parameters":{}}])");
}

// Steps have three tokens, and some end within a character. Then the client has not received all tokens of
// the step in an event.
TEST_F(ResumeTest, EventsOfSeveralTokens) {
  serve_on("h\xC3\xA9llo w\xC3\xB6rld \xF0\x9F\x98\x80 end.", 3);
  cut_after_each_step("/v1/messages",
                      R"({"model":"demo","max_tokens":120,"messages":[{"role":"user","content":"Hi"}])");
  cut_after_each_step("/v1/responses",
                      R"({"model":"demo","max_output_tokens":120,"input":"Hi","request_id":"r")");
}

TEST_F(ResumeTest, Texts) {
  serve_on("hé said: \xF0\x9F\x98\x80 XYX. XYZ!");
  cut_everywhere("/v1/chat/completions", kChat + R"(,"stop":["XYZ"],"logprobs":true,"top_logprobs":2)");
  cut_everywhere("/v1/completions", kCompletion + R"(,"stop":["XYZ"],"logprobs":2,"echo":true)");
  cut_everywhere("/v1/completions", kCompletion + R"(,"max_tokens":12,"min_tokens":3)");
}

TEST_F(ResumeTest, ThoughtsAndCalls) {
  serve_on("{I think}So. <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  cut_everywhere("/v1/chat/completions",
                 kChat + R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto")");
  cut_everywhere("/v1/chat/completions", kChat);
}

TEST_F(ResumeTest, WhatCannotGoOnIsRefused) {
  serve_on("abcdef");
  const auto error = [&](const std::string& fields) {
    const http::Response response = post("/v1/completions", kCompletion + fields + "}");
    EXPECT_EQ(response.status, 400) << response.body;
    EXPECT_EQ(json::parse(response.body).at("error").at("param"), "resume_token_ids");
    return response.body;
  };
  EXPECT_THAT(error(R"(,"resume_token_ids":[97])"), HasSubstr("stream = true"));
  EXPECT_THAT(error(R"(,"stream":true,"n":2,"temperature":1,"resume_token_ids":[97])"),
              HasSubstr("got n = 2"));
  EXPECT_THAT(error(R"(,"stream":true,"resume_token_ids":[258])"),
              HasSubstr("258 is out of vocabulary: must be in [0, 258)"));
  EXPECT_THAT(error(R"(,"stream":true,"resume_token_ids":["a"])"), HasSubstr("resume_token_ids"));
  EXPECT_THAT(error(R"(,"stream":true,"max_tokens":2,"resume_token_ids":[97,98])"),
              HasSubstr("max_tokens = 2"));
  EXPECT_THAT(error(R"(,"stream":true,"stop":["bc"],"resume_token_ids":[97,98,99])"),
              HasSubstr("stop string"));
  const http::Response several =
      post("/v1/completions", R"({"prompt":["a","b"],"stream":true,"resume_token_ids":[97]})");
  EXPECT_EQ(several.status, 400);
}

}  // namespace
}  // namespace octavo
