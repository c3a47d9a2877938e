// Tests Ollama's routes with the whole server.
#include <gmock/gmock.h>

#include "grammar/tool_dialect.h"
#include "serve/ollama/keep_alive.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

class OllamaTest : public ServeTest {
 protected:
  static std::vector<json::object> lines(const http::Response& response) {
    std::vector<json::object> all;
    for (std::size_t at = 0; at < response.body.size();) {
      const std::size_t end = response.body.find('\n', at);
      all.push_back(json::parse(response.body.substr(at, end - at)).as_object());
      at = end + 1;
    }
    return all;
  }
  std::string prompt() const {
    std::string text;
    for (const TokenId id : engine_->last_request.prompt) text += static_cast<char>(id);
    return text;
  }
};

TEST_F(OllamaTest, StreamsAChatUnlessToldOtherwise) {
  serve_text("Hi!");
  const http::Response response = post(
      "/api/chat",
      R"({"model":"demo:latest","messages":[{"role":"user","content":"Hi"}],"options":{"num_ctx":4096}})");
  EXPECT_EQ(response.content_type, "application/x-ndjson");
  const std::vector<json::object> all = lines(response);
  std::string text;
  for (const json::object& one : all) {
    EXPECT_EQ(one.at("model"), "demo");
    text += one.at("message").at("content").as_string();
    EXPECT_EQ(one.at("done"), &one == &all.back());
  }
  EXPECT_EQ(text, "Hi!");
  EXPECT_EQ(all.back().at("done_reason"), "stop");
  EXPECT_EQ(all.back().at("prompt_eval_count"), 20);
  EXPECT_EQ(all.back().at("eval_count"), 4);
  EXPECT_EQ(prompt(), "user: Hi\nassistant: ");
}

TEST_F(OllamaTest, OptionsAreSamplingFields) {
  serve_text("Hi");
  const json::object got =
      reply("/api/chat", R"({"model":"demo","stream":false,"messages":[{"role":"user","content":"x"}],
    "options":{"num_predict":7,"temperature":0.5,"top_k":3,"seed":9,"repeat_penalty":1.25,"stop":["\n"]}})");
  EXPECT_EQ(got.at("message").at("content"), "Hi");
  const SamplingParams& sampling = engine_->last_request.sampling;
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_FLOAT_EQ(static_cast<float>(sampling.temperature), 0.5F);
  EXPECT_EQ(sampling.top_k, 3);
  EXPECT_EQ(sampling.seed, 9U);
  EXPECT_FLOAT_EQ(static_cast<float>(sampling.penalties.repetition), 1.25F);
}

TEST_F(OllamaTest, ANumberOfTokensOfZeroOrLessIsNoLimit) {
  serve_text("Hi");
  for (const std::string most : {"-2", "-1", "0"}) {
    (void)reply("/api/generate",
                R"({"model":"demo","stream":false,"prompt":"x","options":{"num_predict":)" + most + "}}");
    EXPECT_GT(engine_->last_request.sampling.max_tokens, 100) << most;
  }
}

TEST_F(OllamaTest, ErrorsNameOllamasFields) {
  serve_text("Hi");
  const auto error = [&](const std::string& fields) {
    const http::Response response =
        post("/api/chat", R"({"model":"demo","messages":[{"role":"user","content":"x"}],)" + fields + "}");
    EXPECT_EQ(response.status, 400) << fields;
    return std::string(json::parse(response.body).at("error").as_string());
  };
  EXPECT_THAT(error(R"("options":{"num_predict":"many"})"), ::testing::StartsWith("options.num_predict: "));
  EXPECT_THAT(error(R"("options":{"top_p":7})"), ::testing::StartsWith("options.top_p: "));
  EXPECT_THAT(error(R"("format":"yaml")"), ::testing::StartsWith("format: "));
  EXPECT_THAT(error(R"("think":5)"), ::testing::StartsWith("think: "));
  EXPECT_EQ(post("/api/chat", R"({"model":"other","messages":[{"role":"user","content":"x"}]})").status, 404);
  EXPECT_EQ(post("/api/show", R"({"model":"other"})").status, 404);
  EXPECT_EQ(post("/api/create", R"({"model":"other","from":"demo"})").status, 400);
}

TEST_F(OllamaTest, GeneratesWithTheTemplateOrRaw) {
  serve_text("blue");
  const json::object got =
      reply("/api/generate", R"({"model":"demo","stream":false,"system":"Be brief.","prompt":"Why?"})");
  EXPECT_EQ(got.at("response"), "blue");
  EXPECT_EQ(got.at("done"), true);
  EXPECT_EQ(prompt(), "system: Be brief.\nuser: Why?\nassistant: ");
  (void)reply("/api/generate", R"({"model":"demo","stream":false,"raw":true,"prompt":"The sky is"})");
  EXPECT_EQ(prompt(), "The sky is");
}

TEST_F(OllamaTest, ThoughtsHaveAFieldOfTheirOwn) {
  serve_text_with_reasoning("hm>Hello");
  const json::object got =
      reply("/api/chat", R"({"model":"demo","stream":false,"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(got.at("message").at("thinking"), "hm");
  EXPECT_EQ(got.at("message").at("content"), "Hello");
}

TEST_F(OllamaTest, CallsComeWhole) {
  const std::string call = R"(<tool_call>{"name":"get_weather","arguments":{"city":"Rome"}}</tool_call>)"
                           R"(<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>)";
  serve([&](const Request&, int) { return Script{.tokens = ending(call)}; },
        [](ServeOptions& options, http::ServerOptions&) {
          options.rules.tool_dialect = grammar::tool_dialect("hermes");
        });
  const std::string body =
      R"({"model":"demo","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function",
    "function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}])";
  std::vector<std::string> cities;
  for (const json::object& one : lines(post("/api/chat", body + "}")))
    if (const json::value* calls = one.at("message").as_object().if_contains("tool_calls"))
      for (const json::value& each : calls->as_array())
        cities.emplace_back(each.at("function").at("arguments").at("city").as_string());
  EXPECT_THAT(cities, ::testing::ElementsAre("Rome", "Oslo"));
  const json::object got = reply("/api/chat", body + R"(,"stream":false})");
  EXPECT_EQ(got.at("message").at("tool_calls").as_array().size(), 2U);
}

TEST_F(OllamaTest, NamesMayHaveATagOnAllRoutes) {
  serve_text("x");
  for (const std::string name : {"demo", "demo:latest"})
    EXPECT_EQ(post("/v1/completions", R"({"model":")" + name + R"(","prompt":"a"})").status, 200) << name;
  for (const std::string name : {"other:latest", ":latest", "demo:7b"})
    EXPECT_EQ(post("/v1/completions", R"({"model":")" + name + R"(","prompt":"a"})").status, 404) << name;
}

TEST_F(OllamaTest, ErrorsNameItsOwnFields) {
  serve_text("1");
  const auto error = [&](const std::string& path, const std::string& fields) {
    const http::Response refused = post(path, R"({"model":"demo","stream":false,)" + fields + "}");
    EXPECT_EQ(refused.status, 400) << refused.body;
    return std::string(json::parse(refused.body).at("error").as_string());
  };
  EXPECT_TRUE(error("/api/chat", R"("messages":[{"role":"user","content":"Hi","images":["YQ=="]}])")
                  .starts_with("messages[0].images[0]: "));
  EXPECT_TRUE(
      error("/api/generate", R"("prompt":"Hi","system":"s","images":["YQ=="])").starts_with("images[0]: "));
  reply("/api/generate", R"({"model":"demo","stream":false,"prompt":"Hi","format":{"type":"integer"}})");
  ASSERT_TRUE(engine_->last_request.grammar);
  EXPECT_EQ(engine_->last_request.grammar->field, "format");
}

TEST_F(OllamaTest, ARequestWithoutAPromptLoads) {
  serve_text("x");
  const json::object got = reply("/api/generate", R"({"model":"demo"})");
  EXPECT_EQ(got.at("done_reason"), "load");
  EXPECT_EQ(reply("/api/chat", R"({"model":"demo","messages":[],"keep_alive":0})").at("done_reason"),
            "unload");
  EXPECT_EQ(post("/api/generate", R"({"model":"other"})").status, 404);
}

TEST_F(OllamaTest, AModelWithoutVectorsRefusesToEmbedNothing) {
  serve_text("Hi");
  for (const char* input : {"", R"(,"input":"")", R"(,"input":"text")"}) {
    const http::Response refused = post("/api/embed", fmt::format(R"({{"model":"demo"{}}})", input));
    EXPECT_EQ(refused.status, 404);
    EXPECT_THAT(refused.body, testing::HasSubstr("do not make vectors of texts"));
  }
}

TEST_F(OllamaTest, KeepAliveIsANumberOfSecondsOrADuration) {
  constexpr std::int64_t kSecond = 1'000'000;
  const auto us = [](const json::value& value) { return ollama::keep_alive_us(value).value(); };
  EXPECT_EQ(us(0), 0);
  EXPECT_EQ(us(300), 300 * kSecond);
  EXPECT_EQ(us(0.5), kSecond / 2);
  EXPECT_EQ(us("0"), 0);
  EXPECT_EQ(us("1h30m"), 5400 * kSecond);
  EXPECT_EQ(us("1.5h"), 5400 * kSecond);
  EXPECT_EQ(us("250ms"), kSecond / 4);
  for (const json::value& forever :
       {json::value(-1), json::value(-0.5), json::value("-1m"), json::value(1e300)})
    EXPECT_LT(us(forever), 0) << json::serialize(forever);
  for (const json::value& wrong :
       {json::value(""), json::value("5"), json::value("m"), json::value("1 m"), json::value("1.2.3s"),
        json::value("inf"), json::value("--1s"), json::value(true), json::value(json::array())})
    EXPECT_EQ(ollama::keep_alive_us(wrong).error().field, "keep_alive") << json::serialize(wrong);
  serve_text("x");
  EXPECT_EQ(post("/api/generate", R"({"model":"demo","prompt":"x","keep_alive":"soon"})").status, 400);
  EXPECT_EQ(post("/api/generate", R"({"model":"demo","prompt":"x","keep_alive":"5m"})").status, 200);
}

TEST_F(OllamaTest, DescribesTheModel) {
  serve_text("x");
  const json::value tags = json::parse(client().get("/api/tags").value().body);
  EXPECT_EQ(tags.at("models").at(0).at("name"), "demo");
  EXPECT_EQ(tags.at("models").at(1).at("name"), "org/alias");
  const json::object shown = reply("/api/show", R"({"model":"demo:latest"})");
  EXPECT_EQ(shown.at("capabilities").at(0), "completion");
  EXPECT_TRUE(json::parse(client().get("/api/version").value().body).at("version").is_string());
}

}  // namespace
}  // namespace octavo
