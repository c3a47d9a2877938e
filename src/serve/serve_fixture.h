// Fixture for tests: the whole server (sockets, routes, tokenizer, template) with FakeEngine.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <thread>

#include "base/testing/eventually.h"
#include "http/client.h"
#include "http/sse.h"
#include "serve/api_server.h"
#include "serve/fake_engine.h"
#include "serve/test_tokenizer.h"

namespace octavo {

namespace json = boost::json;
using namespace std::chrono_literals;

inline constexpr std::string_view kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if tools %}[{{ tools | length }} tools]{% endif %}{% if add_generation_prompt %}assistant: {% endif "
    "%}";

inline std::vector<TokenId> ending(std::string_view text) {
  std::vector<TokenId> ids = bytes_of(text);
  ids.push_back(kEndToken);
  return ids;
}

class ServeTest : public ::testing::Test {
 protected:
  void serve(FakeEngine::ScriptOf script,
             const std::function<void(ServeOptions&, http::ServerOptions&)>& change = {}, int step_us = 0) {
    engine_ = std::make_unique<FakeEngine>(std::move(script), step_us);
    ServeOptions options;
    options.rules.model_names = {"demo", "org/alias"};
    options.rules.limits.vocab_size = kTestVocabulary;
    options.rules.max_model_len = 200;
    options.eos_ids = {kEndToken};
    options.version = "1.2.3";
    http::ServerOptions http;
    if (change) change(options, http);
    auto service = std::make_shared<Service>(*engine_, tokenizer_, &template_, nullptr, std::move(options));
    server_ = ApiServer::start(service->options.access.api_keys, std::move(http)).value();
    server_->open(std::move(service));
  }
  void serve_text(std::string text) {
    serve([text](const Request&, int) { return Script{.tokens = ending(text)}; });
  }

  // Each answer is a call whose argument has `length` characters, and "Done." after it. A call of more than 1
  // KiB is sent in pieces. With several lengths, a step also has the end of the call and the text after it.
  void serve_long_call(const int& length) {
    serve(
        [&length](const Request&, int) {
          const std::string value(static_cast<std::size_t>(length), 'a');
          const std::string call =
              R"(<tool_call>{"name":"f","arguments":{"x":")" + value + R"("}}</tool_call>Done.)";
          return Script{.tokens = ending(call), .tokens_per_step = 40};
        },
        read_calls);
  }
  // Each answer has two calls, and texts before, between and after them, all in one step.
  void serve_texts_and_calls() {
    const std::string call = R"(<tool_call>{"name":"f","arguments":{}}</tool_call>)";
    serve([text = "One.\n" + call + "\nTwo. " + call + "Three."](
              const Request&, int) { return Script{.tokens = ending(text), .tokens_per_step = 1000}; },
          read_calls);
  }
  static void read_calls(ServeOptions& options, http::ServerOptions&) {
    options.rules.max_model_len = 4000;
    options.rules.tool_dialect = grammar::tool_dialect("hermes");
  }

  void serve_text_with_reasoning(std::string text) {
    serve([text](const Request&, int) { return Script{.tokens = ending(text)}; },
          [](ServeOptions& options, http::ServerOptions&) {
            options.rules.reasoning = openai::ReasoningRule{.begin = '<', .end = '>', .from_start = true};
          });
  }

  http::Client client() {
    return http::Client::connect({.port = server_->port(), .timeout_ms = 60'000}).value();
  }
  http::Response post(const std::string& path, const std::string& body) {
    return client().post_json(path, body).value();
  }
  json::object reply(const std::string& path, const std::string& body) {
    const http::Response response = post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).as_object();
  }
  static std::vector<std::string> events(const http::Response& response) {
    http::SseReader reader;
    return reader.push(response.body);
  }
  std::string metric(const std::string& line_start) {
    const std::string text = client().get("/metrics").value().body;
    const std::size_t at = text.find("\n" + line_start);
    return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  }

  Tokenizer tokenizer_ = byte_tokenizer();
  ChatTemplate template_ = ChatTemplate::compile(kTemplate, {}).value();
  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<ApiServer> server_;
};

inline const std::string kChat = R"({"model":"demo","messages":[{"role":"user","content":"Hi"}])";
inline const std::string kCompletion = R"({"prompt":"Once")";

}  // namespace octavo
