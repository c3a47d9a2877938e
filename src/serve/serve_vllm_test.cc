// Tests fields and routes that vLLM's tests and clients need, with the whole server.
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

// Python clients read these fields without checking that they exist.
TEST_F(ServeTest, FieldsThatARequestDidNotAskForAreNull) {
  serve_text("Hi");
  const json::object chat = reply("/v1/chat/completions", kChat + "}");
  for (const char* name : {"prompt_logprobs", "prompt_token_ids", "kv_transfer_params", "service_tier"})
    EXPECT_TRUE(chat.at(name).is_null()) << name;
  const json::value& choice = chat.at("choices").at(0);
  EXPECT_TRUE(choice.at("token_ids").is_null());
  for (const char* name : {"reasoning", "refusal"})
    EXPECT_TRUE(choice.at("message").at(name).is_null()) << name;
  const json::object completion = reply("/v1/completions", kCompletion + "}");
  for (const char* name : {"kv_transfer_params", "service_tier"})
    EXPECT_TRUE(completion.at(name).is_null()) << name;
  for (const char* name : {"prompt_logprobs", "prompt_token_ids", "token_ids", "logprobs"})
    EXPECT_TRUE(completion.at("choices").at(0).at(name).is_null()) << name;
}

TEST_F(ServeTest, TheLogprobsOfACompletionMayBeABoolean) {
  serve_text("Hi");
  const auto logprobs = [&](const std::string& value) {
    return reply("/v1/completions", kCompletion + R"(,"logprobs":)" + value + "}")
        .at("choices")
        .at(0)
        .at("logprobs");
  };
  EXPECT_TRUE(logprobs("false").is_null());
  EXPECT_EQ(logprobs("true").at("top_logprobs").at(0).as_object().size(), 1U);
  EXPECT_EQ(post("/v1/completions", kCompletion + R"(,"logprobs":"x"})").status, 400);
}

TEST_F(ServeTest, AnEchoedMessageBeginsTheAnswer) {
  serve_text(" a day");
  const std::string body = R"({"model":"demo","messages":[{"role":"user","content":"Hi"},)"
                           R"({"role":"assistant","content":"An apple"}],"add_generation_prompt":false,)"
                           R"("continue_final_message":true,"echo":true)";
  EXPECT_EQ(reply("/v1/chat/completions", body + "}").at("choices").at(0).at("message").at("content"),
            "An apple a day");
  std::string streamed;
  for (const std::string& event : events(post("/v1/chat/completions", body + R"(,"stream":true})"))) {
    if (event == "[DONE]") continue;
    const json::object delta = json::parse(event).at("choices").at(0).at("delta").as_object();
    if (delta.contains("content")) streamed += delta.at("content").as_string();
  }
  EXPECT_EQ(streamed, "An apple a day");
}

TEST_F(ServeTest, TheLoadIsInAHeaderIfTheRequestNamesAFormat) {
  serve_text("Hi");
  const auto report = [&](const std::string& path, const std::string& body, const std::string& format) {
    const http::Response answer =
        client()
            .request("POST", path, body,
                     {{"Content-Type", "application/json"}, {"endpoint-load-metrics-format", format}})
            .value();
    return std::string(answer.headers.find("endpoint-load-metrics").value_or(""));
  };
  EXPECT_EQ(report("/v1/completions", kCompletion + "}", "TEXT"),
            "TEXT named_metrics.kv_cache_usage_perc=0, named_metrics.num_requests_waiting=0");
  EXPECT_EQ(report("/v1/chat/completions", kChat + "}", "json"),
            R"(JSON {"named_metrics": {"kv_cache_usage_perc": 0, "num_requests_waiting": 0}})");
  EXPECT_EQ(report("/v1/completions", kCompletion + "}", "BIN"), "");
  EXPECT_EQ(report("/v1/completions", R"({"model":"demo"})", "TEXT"), "") << "an error has no report";
  EXPECT_FALSE(post("/v1/completions", kCompletion + "}").headers.find("endpoint-load-metrics"));
}

TEST_F(ServeTest, InvocationsAreChatsOrCompletions) {
  serve_text("Hi");
  EXPECT_EQ(reply("/invocations", kChat + "}").at("object"), "chat.completion");
  EXPECT_EQ(reply("/invocations", kCompletion + "}").at("object"), "text_completion");
  EXPECT_EQ(events(post("/invocations", kChat + R"(,"stream":true})")).back(), "[DONE]");
  EXPECT_THAT(post("/invocations", R"({"input":"x"})").body, HasSubstr("must have messages"));
  EXPECT_EQ(post("/invocations", R"({"messages":[],"model":"demo"})").status, 400);
  EXPECT_EQ(post("/invocations", "[").status, 400);
}

TEST_F(ServeTest, InvocationsHaveSessions) {
  serve([](const Request&, int) { return Script{.tokens = ending("Hi")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.features.sagemaker_sessions = true; });
  constexpr const char* kHeader = "X-Amzn-SageMaker-Session-Id";
  const auto send = [&](const std::string& body, const std::string& session) {
    return client()
        .request("POST", "/invocations", body, {{"Content-Type", "application/json"}, {kHeader, session}})
        .value();
  };
  const http::Response created = post("/invocations", R"({"requestType":"NEW_SESSION"})");
  EXPECT_EQ(created.status, 200);
  const std::string header(created.headers.find("X-Amzn-SageMaker-New-Session-Id").value_or(""));
  const std::string id = header.substr(0, header.find(';'));
  EXPECT_THAT(header, testing::MatchesRegex(id + "; Expires=20..-..-..T..:..:..Z"));
  EXPECT_EQ(created.body, fmt::format("Session {} created", id));

  EXPECT_EQ(send(kChat + "}", id).status, 200);
  EXPECT_THAT(send(kChat + "}", "other").body, HasSubstr("session not found"));
  EXPECT_EQ(send(kChat + "}", "other").status, 400);
  EXPECT_EQ(send(R"({"requestType":"CLOSE"})", "other").status, 400);
  EXPECT_EQ(post("/invocations", R"({"requestType":"CLOSE"})").status, 424);
  EXPECT_EQ(send(R"({"requestType":"OPEN"})", id).status, 400);
  EXPECT_THAT(post("/invocations", R"({"requestType":"NEW_SESSION","x":1})").body,
              HasSubstr("x: is not allowed"));

  const http::Response closed = send(R"({"requestType":"CLOSE"})", id);
  EXPECT_EQ(closed.status, 200);
  EXPECT_EQ(closed.headers.find("X-Amzn-SageMaker-Closed-Session-Id"), id);
  EXPECT_EQ(send(kChat + "}", id).status, 400) << "the session is closed";
}

TEST_F(ServeTest, InvocationsRefuseSessionsThatAreNotEnabled) {
  serve_text("Hi");
  const auto send = [&](const std::string& body, const std::string& header, const std::string& value) {
    return client()
        .request("POST", "/invocations", body, {{"Content-Type", "application/json"}, {header, value}})
        .value();
  };
  const http::Response created = post("/invocations", R"({"requestType":"NEW_SESSION"})");
  EXPECT_EQ(created.status, 400);
  EXPECT_THAT(created.body, HasSubstr("stateful sessions are not enabled"));
  EXPECT_EQ(send(kChat + "}", "X-Amzn-SageMaker-Session-Id", "any").status, 400);
  // The header names the model or adapter of the request.
  constexpr const char* kAdapter = "X-Amzn-SageMaker-Adapter-Identifier";
  EXPECT_EQ(send(kChat + "}", kAdapter, "org/alias").status, 200);
  EXPECT_EQ(send(kChat + "}", kAdapter, "no-adapter").status, 404);
}

TEST_F(ServeTest, SeveralConversationsHaveAChoiceEach) {
  serve([](const Request& request, int) {
    return Script{.tokens = ending(request.prompt.size() % 2 == 0 ? "even" : "odd")};
  });
  const std::string one = R"([{"role":"user","content":"Hi"}])",
                    other = R"([{"role":"user","content":"Hey"}])";
  const std::string both = R"({"messages":[)" + one + "," + other + "]";
  const json::object answer = reply("/v1/chat/completions/batch", both + "}");
  ASSERT_EQ(answer.at("choices").as_array().size(), 2U);
  std::set<std::string> texts;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answer.at("choices").at(static_cast<std::size_t>(i)).at("index"), i);
    texts.emplace(
        answer.at("choices").at(static_cast<std::size_t>(i)).at("message").at("content").as_string());
  }
  EXPECT_EQ(texts, (std::set<std::string>{"even", "odd"}));
  EXPECT_EQ(post("/v1/chat/completions/batch", both + R"(,"stream":true})").status, 400);
  EXPECT_EQ(post("/v1/chat/completions/batch", both + R"(,"n":2})").status, 400);
  EXPECT_EQ(post("/v1/chat/completions/batch", R"({"messages":[]})").status, 400);
  EXPECT_THAT(
      post("/v1/chat/completions/batch", R"({"messages":[)" + one + R"(,[{"role":1,"content":"y"}]]})").body,
      HasSubstr("messages[1][0]"));
}

TEST_F(ServeTest, RequestsAreAbortedByTheirIds) {
  serve([](const Request&, int) { return Script{.hang = true}; },
        [](ServeOptions& options, http::ServerOptions&) { options.features.dev_mode = true; });
  std::vector<std::jthread> clients;
  for (const char* id : {"a", "b", "c"})
    clients.emplace_back(
        [this, id] { post("/v1/completions", kCompletion + fmt::format(R"(,"request_id":"{}"}})", id)); });
  ASSERT_TRUE(eventually([&] { return engine_->running() == 3; }));
  EXPECT_EQ(post("/inference/v1/abort_requests", "{}").status, 400);
  EXPECT_EQ(reply("/inference/v1/abort_requests", R"({"request_ids":["a","x"]})").at("aborted"), 1);
  EXPECT_TRUE(eventually([&] { return engine_->running() == 2; }));
  EXPECT_EQ(reply("/abort_requests", "{}").at("aborted"), 2);
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
}

TEST_F(ServeTest, RoutesOfVllmThatAreMissingSayWhy) {
  serve_text("x");
  const http::Response weights = post("/weight_checker", "{}");
  EXPECT_EQ(weights.status, 404);
  EXPECT_THAT(weights.body, HasSubstr("/weight_info"));
  EXPECT_THAT(post("/update_weights", "{}").body, HasSubstr("needs a server with --server-dev-mode"));
  EXPECT_THAT(post("/start_profile", "").body, HasSubstr("needs a server with --profiler-config"));
  EXPECT_THAT(post("/v1/load_lora_adapter", "{}").body, HasSubstr("--allow-runtime-lora-updating"));
  EXPECT_THAT(client().get("/v1/realtime").value().body, HasSubstr("WebSockets"));
}

TEST_F(ServeTest, MessagesAndResponsesAreRenderedAsChats) {
  serve_text("x");
  const json::object messages =
      reply("/v1/messages/render", R"({"max_tokens":9,"messages":[{"role":"user","content":"Hi"}]})");
  const json::object response = reply("/v1/responses/render", R"({"input":"Hi"})");
  EXPECT_EQ(messages.at("token_ids"), response.at("token_ids"));
  EXPECT_EQ(engine_->submitted, 0);
}

TEST_F(ServeTest, BatchesNeedTheirFolder) {
  serve_text("x");
  for (const char* path : {"/v1/files", "/v1/batches/b", "/v1/messages/batches"})
    EXPECT_THAT(client().get(path).value().body, HasSubstr("--batch-dir"));
}

}  // namespace
}  // namespace octavo
