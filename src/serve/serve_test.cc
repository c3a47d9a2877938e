// Tests the whole server in one process (sockets, routes and text) with FakeEngine.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <random>
#include <thread>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

TEST_F(ServeTest, ChatAnswersWhole) {
  serve_text("Hello there");
  const json::object r = reply("/v1/chat/completions", kChat + "}");
  EXPECT_EQ(r.at("object"), "chat.completion");
  EXPECT_EQ(r.at("model"), "demo");
  EXPECT_TRUE(std::string_view(r.at("id").as_string()).starts_with("chatcmpl-"));
  const json::object& choice = r.at("choices").as_array().at(0).as_object();
  EXPECT_EQ(choice.at("message").at("content"), "Hello there");
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_TRUE(choice.at("stop_reason").is_null());
  const std::string prompt = "user: Hi\nassistant: ";
  EXPECT_EQ(r.at("usage").at("prompt_tokens").to_number<int>(), static_cast<int>(prompt.size()));
  EXPECT_EQ(r.at("usage").at("completion_tokens"), 12);
  EXPECT_EQ(engine_->last_request.prompt, bytes_of(prompt));
  EXPECT_EQ(engine_->last_request.sampling.max_tokens, 200 - static_cast<int>(prompt.size()));
}

TEST_F(ServeTest, CompletionsTakeEveryPromptForm) {
  serve([](const Request& r, int) {
    std::vector<TokenId> ids = r.prompt;
    ids.push_back(kEndToken);
    return Script{.tokens = ids};
  });
  const auto texts = [&](const std::string& prompt) {
    std::vector<std::string> out;
    const json::object r = reply("/v1/completions", "{\"prompt\":" + prompt + "}");
    for (const json::value& choice : r.at("choices").as_array())
      out.emplace_back(choice.at("text").as_string());
    return out;
  };
  EXPECT_EQ(texts("\"ab\""), (std::vector<std::string>{"ab"}));
  EXPECT_EQ(texts(R"(["ab","c","de"])"), (std::vector<std::string>{"ab", "c", "de"}));
  EXPECT_EQ(texts("[97,98]"), (std::vector<std::string>{"ab"}));
  EXPECT_EQ(texts("[[97],[98,99]]"), (std::vector<std::string>{"a", "bc"}));
}

TEST_F(ServeTest, StopStringsOverTokenBoundariesAbortTheEngine) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("one two three four"), .hang = true}; });
  for (const std::string stream : {"", R"(,"stream":true)"}) {
    const http::Response response =
        post("/v1/completions", kCompletion + R"(,"max_tokens":100,"stop":["three","xx"])" + stream + "}");
    EXPECT_THAT(response.body, HasSubstr(R"("finish_reason":"stop")"));
    EXPECT_THAT(response.body, HasSubstr(R"("stop_reason":"three")"));
    std::string text;
    if (stream.empty()) {
      text = json::parse(response.body).at("choices").as_array().at(0).at("text").as_string();
    } else {
      const auto all = events(response);
      for (std::size_t i = 0; i + 1 < all.size(); ++i)
        text += json::parse(all[i]).at("choices").as_array().at(0).at("text").as_string();
    }
    EXPECT_EQ(text, "one two ");
  }
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
  EXPECT_TRUE(eventually([&] {
    return metric("vllm:request_success_total{model_name=\"demo\",engine=\"0\",finished_reason=\"stop\"")
        .ends_with(" 2");
  }));
}

TEST_F(ServeTest, SeveralAnswersToOnePrompt) {
  serve([](const Request&, int index) {
    return Script{.tokens = ending(
                      fmt::format("answer {}{}", index, std::string(static_cast<std::size_t>(index), '!')))};
  });
  const json::object r = reply("/v1/chat/completions", kChat + R"(,"n":3})");
  ASSERT_EQ(r.at("choices").as_array().size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const json::value& choice = r.at("choices").as_array().at(static_cast<std::size_t>(i));
    EXPECT_EQ(choice.at("index"), i);
    EXPECT_THAT(std::string(choice.at("message").at("content").as_string()), HasSubstr(std::to_string(i)));
  }
  std::vector<std::string> streamed(3);
  const auto all = events(post("/v1/chat/completions", kChat + R"(,"n":3,"stream":true})"));
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const json::value choice = json::parse(all[i]).at("choices").as_array().at(0);
    streamed[choice.at("index").to_number<std::size_t>()] += choice.at("delta").at("content").as_string();
  }
  EXPECT_EQ(streamed, (std::vector<std::string>{"answer 0", "answer 1!", "answer 2!!"}));
}

TEST_F(ServeTest, LogprobsInBothShapes) {
  serve_text("hé");
  const json::object c = reply("/v1/chat/completions", kChat + R"(,"logprobs":true,"top_logprobs":2})");
  const json::array& content = c.at("choices").as_array().at(0).at("logprobs").at("content").as_array();
  ASSERT_EQ(content.size(), 4U);
  EXPECT_EQ(content.at(0).at("token"), "h");
  EXPECT_EQ(content.at(0).at("logprob"), -0.5);
  EXPECT_EQ(json::serialize(content.at(1).at("bytes")), "[195]");
  EXPECT_EQ(content.at(1).at("token"), "\xEF\xBF\xBD");
  EXPECT_EQ(content.at(0).at("top_logprobs").as_array().size(), 2U);
  EXPECT_EQ(content.at(0).at("top_logprobs").as_array().at(1).at("token"), "i");

  const json::object p = reply("/v1/completions", kCompletion + R"(,"logprobs":2,"echo":true})");
  const json::value& choice = p.at("choices").as_array().at(0);
  EXPECT_EQ(choice.at("text"), "Oncehé");
  const json::value& lists = choice.at("logprobs");
  EXPECT_EQ(lists.at("tokens").as_array().size(), 8U);
  EXPECT_TRUE(lists.at("token_logprobs").as_array().at(0).is_null());
  EXPECT_EQ(lists.at("token_logprobs").as_array().at(1), -0.5);
  EXPECT_EQ(json::serialize(lists.at("text_offset")), "[0,1,2,3,4,5,5,6]") << "two tokens are one character";
  EXPECT_EQ(lists.at("top_logprobs").as_array().at(4).at("i"), -1.5);

  const json::object only =
      reply("/v1/completions", kCompletion + R"(,"echo":true,"max_tokens":0,"logprobs":1})");
  EXPECT_EQ(only.at("choices").as_array().at(0).at("text"), "Once");
  EXPECT_EQ(only.at("usage").at("completion_tokens"), 0);
  const json::object with_prompt =
      reply("/v1/chat/completions", kChat + R"(,"prompt_logprobs":1,"return_token_ids":true})");
  EXPECT_TRUE(with_prompt.at("prompt_logprobs").as_array().at(0).is_null());
  EXPECT_EQ(with_prompt.at("prompt_token_ids").as_array().size(),
            with_prompt.at("prompt_logprobs").as_array().size());
}

TEST_F(ServeTest, EngineErrorsReachTheClient) {
  serve([](const Request&, int) {
    return Script{.tokens = bytes_of("ab"),
                  .end = FinishReason::error,
                  .error = Error{ErrorCode::internal, "logits are not finite", {}}};
  });
  const http::Response whole = post("/v1/chat/completions", kChat + "}");
  EXPECT_EQ(whole.status, 500);
  EXPECT_THAT(whole.body, HasSubstr("logits are not finite"));
  const auto all = events(post("/v1/chat/completions", kChat + R"(,"stream":true})"));
  ASSERT_GE(all.size(), 2U);
  EXPECT_EQ(all.back(), "[DONE]");
  EXPECT_THAT(all[all.size() - 2],
              HasSubstr(R"({"error":{"message":"logits are not finite","type":"InternalServerError")"));
  const http::Headers with_cost{{"Content-Type", "application/json"}, {"X-Octavo-Cost", "1"}};
  const auto charged =
      client().request("POST", "/v1/chat/completions", kChat + R"(,"stream":true})", with_cost);
  EXPECT_THAT(charged->body, ::testing::EndsWith("\n\n: X-Octavo-Cost: output_tokens=0\n\n"));
  engine_->refusal_code = ErrorCode::resource_exhausted;
  const http::Response full = post("/v1/chat/completions", kChat + R"(,"stream":true})");
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.headers.find("Retry-After"), "1");
  engine_->refusal_code = ErrorCode::unavailable;
  EXPECT_EQ(post("/v1/chat/completions", kChat + "}").status, 503);
  EXPECT_EQ(client().get("/health")->status, 200);
  engine_->hangs = true;
  EXPECT_EQ(client().get("/health")->status, 503);
  engine_->hangs = false;
  EXPECT_EQ(client().get("/health")->status, 200);
  engine_->healthy = false;
  EXPECT_EQ(client().get("/health")->status, 503);
}

TEST_F(ServeTest, BadInputIsA400ThatNamesTheField) {
  serve_text("x");
  const auto error = [&](const std::string& path, const std::string& body) {
    const http::Response response = post(path, body);
    EXPECT_EQ(response.status, 400) << response.body;
    const json::value parsed = json::parse(response.body).at("error");
    EXPECT_EQ(parsed.at("code"), 400);
    EXPECT_EQ(parsed.at("type"), "BadRequestError");
    return parsed.at("param").is_null() ? std::string("null") : std::string(parsed.at("param").as_string());
  };
  EXPECT_EQ(error("/v1/chat/completions", "{"), "null");
  EXPECT_EQ(error("/v1/chat/completions", "{}"), "messages");
  EXPECT_EQ(error("/v1/chat/completions", kChat + R"(,"temperature":3})"), "temperature");
  EXPECT_EQ(error("/v1/chat/completions", kChat + R"(,"max_tokens":2147483648})"), "max_tokens");
  EXPECT_EQ(error("/v1/chat/completions", kChat + R"(,"max_tokens":201})"), "max_tokens");
  EXPECT_EQ(post("/v1/chat/completions", kChat + R"(,"max_tokens":190})").status, 200)
      << "more than the prompt leaves, not more than the context";
  EXPECT_EQ(error("/v1/completions", R"({"prompt":""})"), "prompt");
  EXPECT_EQ(error("/v1/completions", R"({"prompt":[]})"), "prompt");
  EXPECT_EQ(error("/v1/completions", R"({"prompt":[[]]})"), "prompt");
  EXPECT_EQ(error("/v1/completions", R"({"prompt":[258]})"), "prompt");
  EXPECT_EQ(error("/v1/completions", fmt::format(R"({{"prompt":"{}"}})", std::string(200, 'x'))), "prompt");
  EXPECT_EQ(error("/v1/completions", fmt::format(R"({{"prompt":"{}"}})", std::string(1'000'000, 'x'))),
            "prompt");
  EXPECT_EQ(post("/v1/completions", fmt::format(R"({{"prompt":"{}","max_tokens":1}})", std::string(199, 'x')))
                .status,
            200);
  EXPECT_EQ(post("/v1/completions", R"({"model":"other","prompt":"x"})").status, 404);
  const json::object cut =
      reply("/v1/completions",
            fmt::format(R"({{"prompt":"{}y","truncate_prompt_tokens":3}})", std::string(5000, 'x')));
  EXPECT_EQ(cut.at("usage").at("prompt_tokens"), 3);
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("xxy"));
}

TEST_F(ServeTest, FieldsReachTheEngine) {
  serve_text("x");
  reply("/v1/completions",
        kCompletion + R"(,"bad_words":["no"],"seed":5,"top_k":7,"min_p":0.1,"logit_bias":{"65":200},
      "stop_token_ids":[66,65],"ignore_eos":true,"cache_salt":"tenant","max_tokens":9,"min_tokens":2})");
  const Request& r = engine_->last_request;
  EXPECT_EQ(r.sampling.tokens.bad_word_ids,
            (std::vector<std::vector<TokenId>>{bytes_of("no"), bytes_of(" no")}));
  EXPECT_EQ(r.sampling.seed, 5);
  EXPECT_EQ(r.sampling.top_k, 7);
  EXPECT_EQ(r.sampling.tokens.logit_bias.at(0).second, 100.F);
  EXPECT_EQ(r.sampling.stop_token_ids, (std::vector<TokenId>{65, 66}));
  EXPECT_EQ(r.sampling.max_tokens, 9);
  EXPECT_EQ(r.identity.salt, "tenant");
  EXPECT_EQ(r.eos_ids, (std::vector<TokenId>{kEndToken}));
}

TEST_F(ServeTest, SmallRoutes) {
  serve_text("x");
  http::Client c = client();
  EXPECT_EQ(c.get("/health")->status, 200);
  EXPECT_EQ(c.get("/ping")->status, 200);
  EXPECT_EQ(c.request("POST", "/ping")->status, 200);
  EXPECT_EQ(c.get("/version")->body, R"({"version":"1.2.3"})");
  const json::value models = json::parse(c.get("/v1/models")->body);
  EXPECT_EQ(models.at("data").as_array().size(), 2U);
  EXPECT_EQ(models.at("data").as_array().at(0).at("id"), "demo");
  EXPECT_EQ(c.get("/v1/models/org%2Falias")->status, 200);
  EXPECT_EQ(c.get("/v1/models/none")->status, 404);
  EXPECT_EQ(c.post_json("/tokenize", R"({"prompt":"hi","return_token_strs":true})")->body,
            R"({"count":2,"max_model_len":200,"tokens":[104,105],"token_strs":["h","i"]})");
  EXPECT_THAT(c.post_json("/tokenize", R"({"messages":[{"role":"user","content":"a"}]})")->body,
              HasSubstr("\"count\":19"));
  EXPECT_EQ(c.post_json("/detokenize", R"({"tokens":[104,105]})")->body, R"({"prompt":"hi"})");
  EXPECT_EQ(c.post_json("/detokenize", R"({"tokens":[300]})")->status, 400);
  EXPECT_EQ(c.get("/nope")->status, 404);
  const http::Response wrong = c.get("/v1/completions").value();
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.find("Allow"), "POST");
  EXPECT_EQ(c.request("POST", "/v1/completions", "{}", {{"Content-Type", "text/plain"}})->status, 415);
  EXPECT_EQ(c.request("HEAD", "/health")->status, 200);
  EXPECT_THAT(c.get("/metrics")->body, HasSubstr("vllm:num_requests_running"));
}

TEST_F(ServeTest, OfThePrefixCacheTheEnginesOwnIsReset) {
  serve([](const Request&, int) { return Script{.tokens = ending("x")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.features.dev_mode = true; });
  http::Client c = client();
  for (const char* query : {"", "?reset_external=false", "?reset_running_requests=0&reset_external=False"})
    EXPECT_EQ(c.post_json(std::string("/reset_prefix_cache") + query, "")->status, 200) << query;
  for (const char* name : {"reset_external", "reset_running_requests"}) {
    const http::Response refused = c.post_json(fmt::format("/reset_prefix_cache?{}=true", name), "").value();
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr(name));
  }
}

TEST_F(ServeTest, WithAKeyEveryRouteButHealthNeedsIt) {
  serve([](const Request&, int) { return Script{.tokens = ending("x")}; },
        [](ServeOptions& o, http::ServerOptions&) {
          o.access.api_keys = {"secret"};
          o.features.request_id_headers = true;
        });
  const std::vector<std::string> paths = {"/ping",
                                          "/version",
                                          "/load",
                                          "/metrics",
                                          "/v1/models",
                                          "/v1/models/demo",
                                          "/v1/completions",
                                          "/v1/chat/completions",
                                          "/tokenize",
                                          "/detokenize",
                                          "/nope",
                                          "/",
                                          "/Health",
                                          "/health/",
                                          "/health?x=/health",
                                          "/v1/models?/health"};
  http::Client c = client();
  for (const std::string& path : paths) {
    for (const std::string method : {"GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
      if (path.starts_with("/health?")) continue;
      EXPECT_EQ(c.request(method, path)->status, 401) << method << path;
      EXPECT_EQ(c.request(method, path, "", {{"Authorization", "Bearer wrong"}})->status, 401)
          << method << path;
      EXPECT_NE(c.request(method, path, "", {{"Authorization", "Bearer secret"}})->status, 401)
          << method << path;
    }
  }
  EXPECT_EQ(c.get("/health")->status, 200);
  for (const std::string odd :
       {"//metrics", "/health/../metrics", "/%2e%2e/metrics", "/health%2f..%2fmetrics", "/./metrics"})
    EXPECT_EQ(client().get(odd)->status, 400) << odd;
  EXPECT_EQ(client().get("http://x/metrics")->status, 401);
  EXPECT_EQ(client().get("/%6detrics")->status, 401);
  EXPECT_EQ(c.request("GET", "/health", "", {{"X-Request-Id", "abc"}})->headers.find("X-Request-Id"), "abc");
}

TEST_F(ServeTest, RequestIdsThatAreNoTextAreIgnored) {
  serve_text("x");
  for (const auto& [given, taken] : {std::pair{"abc", true}, std::pair{"a\xff", false}}) {
    const auto response = client().request("POST", "/v1/completions", R"({"prompt":"a","max_tokens":1})",
                                           {{"X-Request-Id", given}});
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->body.find(given) != std::string::npos, taken) << response->body;
  }
}

TEST_F(ServeTest, AReplyTellsItsTimesOnWish) {
  serve([](const Request&, int) { return Script{.tokens = ending("abc")}; },
        [](ServeOptions& o, http::ServerOptions&) { o.features.request_metrics = true; });
  for (const std::string path : {"/v1/chat/completions", "/v1/completions"}) {
    const std::string body = path.find("chat") == std::string::npos ? R"({"prompt":"a")" : kChat;
    const http::Response response = post(path, body + "}");
    EXPECT_THAT(std::string(response.headers.find("Server-Timing").value_or("")), HasSubstr("generation;dur=")) << path;
    const json::object metrics = json::parse(response.body).at("metrics").as_object();
    EXPECT_GE(metrics.at("time_to_first_token_ms").as_double(), 0.0);
    EXPECT_GE(metrics.at("mean_itl_ms").as_double(), 0.0);
    EXPECT_TRUE(metrics.contains("queue_time_ms") && metrics.contains("tokens_per_second"));
    const json::object one = json::parse(post(path, body + R"(,"max_tokens":1})").body).as_object();
    EXPECT_FALSE(one.at("metrics").as_object().contains("mean_itl_ms")) << "one token has no gap";

    const std::string stream =
        post(path, body + R"(,"stream":true,"stream_options":{"include_usage":true}})").body;
    EXPECT_THAT(stream, HasSubstr(R"("metrics":{"time_to_first_token_ms":)")) << path;
    EXPECT_EQ(post(path, body + R"(,"n":2})").body.find("metrics"), std::string::npos);
  }
}

TEST_F(ServeTest, WithoutAKeyNoRouteTakesABody) {
  serve([](const Request&, int) { return Script{.tokens = ending("x")}; },
        [](ServeOptions& o, http::ServerOptions&) { o.access.api_keys = {"secret"}; });
  for (const std::string method : {"GET", "POST"}) {
    http::Client c = client();
    ASSERT_TRUE(
        c.send_raw(method + " /health HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n").has_value());
    // refused although the client has not sent the body
    EXPECT_THAT(c.receive_raw().value(), HasSubstr("HTTP/1.1 401")) << method;
  }
  EXPECT_EQ(client().get("/health")->status, 200);
}

TEST_F(ServeTest, HealthAnswersWhileALargeBodyIsRead) {
  serve_text("x");
  std::thread large([&] {
    const std::string body =
        R"({"messages":[{"role":"user","content":")" + std::string(27 << 20, 'x') + "\"}]}";
    EXPECT_EQ(post("/v1/chat/completions", body).status, 400);
  });
  http::Client c = client();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(c.get("/health")->status, 200);
  large.join();
}

TEST_F(ServeTest, StructuredOutputsReachTheEngine) {
  serve_text("ab");
  reply("/v1/completions", R"({"prompt":"x","structured_outputs":{"regex":"ab"}})");
  ASSERT_TRUE(engine_->last_request.grammar);
  EXPECT_EQ(engine_->last_request.grammar->kind, grammar::GrammarKind::regex);
  EXPECT_EQ(engine_->last_request.grammar->text, "ab");
  EXPECT_EQ(engine_->last_request.grammar->field, "structured_outputs.regex");
  reply("/v1/completions", R"({"prompt":"x"})");
  EXPECT_FALSE(engine_->last_request.grammar);
}

// An error before the first token sets the HTTP status. A later error in a stream is an event.
TEST_F(ServeTest, WhatTheEngineRefusesIsTheCallersError) {
  const Error refusal{ErrorCode::invalid_argument, "cannot be enforced", "structured_outputs.json"};
  const auto run = [&](std::vector<TokenId> tokens) {
    serve([=](const Request&, int) {
      return Script{.tokens = tokens, .end = FinishReason::error, .error = refusal, .tokens_per_step = 1};
    });
  };
  run({});
  for (const std::string fields : {"", R"(,"stream":true)", R"(,"stream":true,"n":2,"temperature":1)"}) {
    const http::Response refused = post("/v1/chat/completions", kChat + fields + "}");
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(json::parse(refused.body).at("error").at("param"), "structured_outputs.json");
  }
  EXPECT_THAT(
      metric("vllm:request_success_total{model_name=\"demo\",engine=\"0\",finished_reason=\"error\"}"),
      HasSubstr("} 0"));
  run(bytes_of("ab"));
  const http::Response broken = post("/v1/chat/completions", kChat + R"(,"stream":true})");
  EXPECT_EQ(broken.status, 200);
  EXPECT_THAT(broken.body, HasSubstr("cannot be enforced"));
  EXPECT_THAT(broken.body, HasSubstr("data: [DONE]"));
}

TEST_F(ServeTest, AFinalMessageIsContinued) {
  serve_text("x");
  reply("/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"be"}],
      "add_generation_prompt":false,"continue_final_message":true})");
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: a\nassistant: be"));
}

TEST_F(ServeTest, AnswersUnavailableUntilTheModelIsThere) {
  server_ = ApiServer::start({"secret"}, {}).value();
  const auto status = [&](const std::string& path, const std::string& key) {
    return client().request("GET", path, "", {{"Authorization", "Bearer " + key}})->status;
  };
  EXPECT_EQ(status("/health", ""), 503);
  EXPECT_EQ(status("/v1/models", "secret"), 503);
  engine_ = std::make_unique<FakeEngine>([](const Request&, int) { return Script{}; });
  ServeOptions options;
  options.rules.model_names = {"demo"};
  server_->open(std::make_shared<Service>(*engine_, tokenizer_, &template_, nullptr, std::move(options)));
  EXPECT_EQ(status("/health", ""), 200);
  EXPECT_EQ(status("/v1/models", "secret"), 200);
  EXPECT_EQ(status("/v1/models", "wrong"), 401);
}

TEST_F(ServeTest, SurvivesRandomBodies) {
  serve_text("x");
  std::mt19937 random(11);
  const std::string valid =
      kChat + R"(,"temperature":0.5,"stop":["a"],"stream":false,"logit_bias":{"5":1},"n":2})";
  http::Client c = client();
  for (int round = 0; round < 500; ++round) {
    std::string body = valid;
    const int changes = static_cast<int>(random() % 4) + 1;
    for (int i = 0; i < changes; ++i) body[random() % body.size()] = static_cast<char>(random());
    const auto response = c.post_json("/v1/chat/completions", body);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_LT(response->status, 500) << body;
  }
}

TEST_F(ServeTest, HeadersThatAreNoTextAreRefused) {
  serve_text("ok");
  for (const std::string name : {"X-Request-Timeout", "X-data-parallel-rank"})
    for (const std::string value : {"\xc7", "a\xe2\x82", "\xff\xfe"}) {
      const auto response = client().request("POST", "/v1/completions", kCompletion + "}",
                                             {{"Content-Type", "application/json"}, {name, value}});
      ASSERT_TRUE(response.has_value());
      EXPECT_EQ(response->status, 400) << response->body;
    }
  EXPECT_EQ(post("/v1/completions", kCompletion + "}").status, 200);
}

}  // namespace
}  // namespace octavo
