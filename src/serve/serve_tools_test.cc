// Tests tools and reasoning with the whole server.
#include <gmock/gmock.h>

#include <map>

#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

const std::string kTools =
    R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";

TEST_F(ServeTest, ToolsAreRenderedIntoThePrompt) {
  serve_text("x");
  reply("/v1/chat/completions",
        kChat + R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"})");
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: Hi\n[1 tools]assistant: "));
}

TEST_F(ServeTest, ForcedToolCallsComeAsToolCalls) {
  serve_text(R"([{"name":"f","parameters":{"a":[1]}},{"name":"f","parameters":{}}])");
  const std::string body = kChat + kTools + R"(,"tool_choice":"required")";
  const json::object whole = reply("/v1/chat/completions", body + "}");
  const json::object& choice = whole.at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_TRUE(choice.at("message").at("content").is_null());
  const json::array& calls = choice.at("message").at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("function").at("name"), "f");
  EXPECT_EQ(calls[0].at("function").at("arguments"), R"({"a":[1]})");
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));

  int chunks_with_calls = 0;
  for (const std::string& event : events(post("/v1/chat/completions", body + R"(,"stream":true})"))) {
    if (event == "[DONE]") continue;
    const json::value chunk = json::parse(event);
    const json::object& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (!delta.contains("tool_calls")) continue;
    ++chunks_with_calls;
    EXPECT_EQ(delta.at("tool_calls").at(1).at("index"), 1);
    EXPECT_EQ(chunk.at("choices").at(0).at("finish_reason"), "tool_calls");
  }
  EXPECT_EQ(chunks_with_calls, 1);
}

TEST_F(ServeTest, ACallInOpenThoughtsIsACall) {
  const std::string text = "I see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";
  serve([text](const Request&, int) { return Script{.tokens = ending(text), .tokens_per_step = 3}; },
        [](ServeOptions& options, http::ServerOptions&) {
          options.rules.max_model_len = 300;
          options.rules.tool_dialect = grammar::tool_dialect("hermes");
          options.rules.reasoning =
              openai::ReasoningRule{.begin = 1, .end = 2, .from_start = true, .ends_at_call = true};
        });
  const json::object choice = reply("/v1/chat/completions", kChat + kTools + "}").at("choices").at(0).as_object();
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_EQ(choice.at("message").at("reasoning"), "I see.");
  EXPECT_EQ(choice.at("message").at("tool_calls").at(0).at("function").at("arguments"), R"({"x": 1})");

  const std::string items = R"({"model":"demo","input":"Hi","tools":[{"type":"function","name":"f"}])";
  const json::object response = reply("/v1/responses", items + "}");
  EXPECT_EQ(response.at("output").at(0).at("type"), "reasoning");
  EXPECT_EQ(response.at("output").at(1).at("type"), "function_call");
  EXPECT_EQ(response.at("output").at(1).at("arguments"), R"({"x": 1})");

  const std::string blocks = R"({"model":"demo","max_tokens":99,"messages":[{"role":"user","content":"Hi"}],)"
                             R"("tools":[{"name":"f","input_schema":{"type":"object"}}])";
  const json::object message = reply("/v1/messages", blocks + "}");
  EXPECT_EQ(message.at("stop_reason"), "tool_use");
  EXPECT_EQ(message.at("content").at(1).at("input").at("x"), 1);

  for (const auto& [path, body] : std::initializer_list<std::pair<std::string, std::string>>{
           {"/v1/chat/completions", kChat + kTools}, {"/v1/responses", items}, {"/v1/messages", blocks}})
    EXPECT_THAT(post(path, body + R"(,"stream":true})").body, HasSubstr(R"({\"x\": 1})")) << path;
}

// A limit may end the list of calls in the white space after a call, or within the next call. As in vLLM, the
// content is null.
TEST_F(ServeTest, AWholeForcedCallIsACall) {
  const std::string whole = R"([{"name":"f","parameters":{"a":123456789012345678901}})";
  for (const std::string end : {"  \n ", ",\n", ",\n{\"", "]  ", R"(,{"name":"f","para)"}) {
    const std::string text = whole + end;
    serve([text](const Request&, int) { return Script{.tokens = bytes_of(text), .end = FinishReason::length}; });
    const json::object choice =
        reply("/v1/chat/completions", kChat + kTools + R"(,"tool_choice":"required"})").at("choices").at(0).as_object();
    EXPECT_EQ(choice.at("finish_reason"), "length") << text;
    EXPECT_TRUE(choice.at("message").at("content").is_null()) << text;
    const json::array& calls = choice.at("message").at("tool_calls").as_array();
    ASSERT_EQ(calls.size(), 1u) << text;
    EXPECT_EQ(calls[0].at("function").at("arguments"), R"({"a":123456789012345678901})");
  }
}

// As in vLLM, the incomplete arguments of a named tool stay arguments, and an incomplete list has no calls.
TEST_F(ServeTest, AStopStringInAForcedCallLeavesNoContent) {
  for (const auto& [choice, text, size] :
       std::initializer_list<std::tuple<std::string, std::string, std::size_t>>{
           {R"({"type":"function","function":{"name":"f"}})", R"({"a":"one STOP two"})", 1},
           {R"("required")", R"([{"name":"f","parameters":{"a":"one STOP two"}}])", 0}}) {
    serve_text(text);
    const std::string body = kChat + kTools + R"(,"stop":["STOP"],"tool_choice":)" + choice;
    const json::value whole = reply("/v1/chat/completions", body + "}").at("choices").at(0);
    EXPECT_TRUE(whole.at("message").at("content").is_null()) << whole;
    EXPECT_EQ(whole.at("stop_reason"), "STOP");
    const json::value* const calls = whole.at("message").as_object().if_contains("tool_calls");
    ASSERT_EQ(calls ? calls->as_array().size() : 0, size) << whole;
    if (size > 0) {
      EXPECT_EQ(calls->at(0).at("function").at("arguments"), R"({"a":"one )");
    }
    EXPECT_FALSE(post("/v1/chat/completions", body + R"(,"stream":true})").body.contains(R"("content":"[)"));
  }
}

TEST_F(ServeTest, ANamedToolsArgumentsStream) {
  serve_text(R"({"a":1})");
  const std::string body =
      kChat + kTools + R"(,"tool_choice":{"type":"function","function":{"name":"f"}},"stream":true})";
  std::string arguments, ids, last_finish;
  for (const std::string& event : events(post("/v1/chat/completions", body))) {
    if (event == "[DONE]") continue;
    const json::object choice = json::parse(event).at("choices").at(0).as_object();
    if (choice.at("finish_reason").is_string()) last_finish = choice.at("finish_reason").as_string();
    const json::object& delta = choice.at("delta").as_object();
    if (!delta.contains("tool_calls")) continue;
    const json::object& call = delta.at("tool_calls").at(0).as_object();
    arguments += call.at("function").at("arguments").as_string();
    if (call.contains("id")) ids += call.at("function").at("name").as_string();
  }
  EXPECT_EQ(arguments, R"({"a":1})");
  EXPECT_EQ(ids, "f");  // only the first piece of the call has the id
  EXPECT_EQ(last_finish, "stop");
}

TEST_F(ServeTest, ChosenToolCallsAreFoundInTheText) {
  const std::string text =
      "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
  for (const int step : {1, 3, 1000}) {
    serve([&text, step](const Request&,
                        int) { return Script{.tokens = ending(text), .tokens_per_step = step}; },
          [](ServeOptions& options, http::ServerOptions&) {
            options.rules.tool_dialect = grammar::tool_dialect("hermes");
            options.rules.max_model_len = 400;
          });
    const json::object whole = reply("/v1/chat/completions", kChat + kTools + "}");
    const json::object& choice = whole.at("choices").at(0).as_object();
    EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
    EXPECT_EQ(choice.at("message").at("content"), "I look.");
    const json::array& calls = choice.at("message").at("tool_calls").as_array();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].at("function").at("arguments"), R"({"a": [1, 2]})");
    EXPECT_FALSE(calls[0].as_object().contains("index"));

    std::string content, finish;
    std::map<int, std::string> names, arguments;
    for (const std::string& event :
         events(post("/v1/chat/completions", kChat + kTools + R"(,"stream":true})"))) {
      if (event == "[DONE]") continue;
      const json::object chunk = json::parse(event).at("choices").at(0).as_object();
      const json::object& delta = chunk.at("delta").as_object();
      if (delta.contains("content")) content += delta.at("content").as_string();
      if (chunk.at("finish_reason").is_string()) finish = chunk.at("finish_reason").as_string();
      if (!delta.contains("tool_calls")) continue;
      for (const json::value& call : delta.at("tool_calls").as_array()) {
        const int index = call.at("index").to_number<int>();
        EXPECT_EQ(call.as_object().contains("id"), !names.contains(index));
        if (call.as_object().contains("id")) names[index] = call.at("function").at("name").as_string();
        arguments[index] += call.at("function").at("arguments").as_string();
      }
    }
    EXPECT_EQ(content, "I look.");
    EXPECT_EQ(finish, "tool_calls");
    EXPECT_EQ(names, (std::map<int, std::string>{{0, "f"}, {1, "g"}}));
    EXPECT_EQ(arguments, (std::map<int, std::string>{{0, R"({"a": [1, 2]})"}, {1, "{}"}}));
  }
  EXPECT_EQ(post("/v1/chat/completions", kChat + kTools + R"(,"tool_choice":"auto"})").status, 200);
}

TEST_F(ServeTest, CallsAreMarkedByTokensThatTextSkips) {
  std::vector<TokenId> tokens = bytes_of("x");
  tokens.push_back(kMarkToken);
  for (const TokenId id : ending("f{}")) tokens.push_back(id);
  static constexpr grammar::ToolDialect kDialect{.name = "marked",
                                                 .form = grammar::ToolDialect::Form::named,
                                                 .call = {.begin = "<|mark|>"},
                                                 .trigger = "<|mark|>",
                                                 .short_ids = true};
  serve([&](const Request&, int) { return Script{.tokens = tokens}; },
        [&](ServeOptions& options, http::ServerOptions&) {
          options.rules.tool_dialect = &kDialect;
          options.tool_tokens = openai::tool_tokens(kDialect, tokenizer_);
        });
  const json::object whole = reply("/v1/chat/completions", kChat + kTools + "}");
  const json::value& call = whole.at("choices").at(0).at("message").at("tool_calls").at(0);
  EXPECT_EQ(call.at("function").at("name"), "f");
  EXPECT_EQ(call.at("id").as_string().size(), 9u);
  EXPECT_EQ(reply("/v1/chat/completions", kChat + "}").at("choices").at(0).at("message").at("content"),
            "xf{}");
}

TEST_F(ServeTest, StrictToolsBecomeAGrammar) {
  serve([](const Request&, int) { return Script{.tokens = ending("x")}; },
        [](ServeOptions& options, http::ServerOptions&) {
          options.rules.tool_dialect = grammar::tool_dialect("hermes");
          options.rules.special_tokens = {"<tool_call>", "</tool_call>"};
        });
  const auto tools = [](const std::string& schema) {
    return R"(,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":)" + schema +
           "}}]}";
  };
  reply("/v1/chat/completions",
        kChat + tools(R"({"type":"object","properties":{"a":{"enum":[1]}},"required":["a"]})"));
  const auto& source = engine_->last_request.grammar;
  ASSERT_TRUE(source);
  EXPECT_EQ(source->kind, grammar::GrammarKind::structural_tag);
  EXPECT_EQ(source->field, "tools");
  EXPECT_THAT(source->text, HasSubstr("token_triggered_tags")) << "the trigger is a special token";
  EXPECT_THAT(source->text, HasSubstr(R"({"enum":[1]})"));
}

const std::string kTwoTools = R"(,"tools":[{"type":"function","function":{"name":"f"}},
    {"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":)";

// The prompt contains all tools even if only some are allowed, so that the cached prefix still matches.
TEST_F(ServeTest, OnlyAllowedToolsAreCalled) {
  const auto choice = [](const std::string& mode, const std::string& name) {
    return kChat + kTwoTools + R"({"mode":")" + mode +
           R"(","tools":[{"type":"function","function":{"name":")" + name + "\"}}]}}}";
  };
  const auto serve_dialect = [&](const std::string& name, const std::string& text) {
    serve([text](const Request&, int) { return Script{.tokens = ending(text)}; },
          [&](ServeOptions& options, http::ServerOptions&) {
            options.rules.tool_dialect = grammar::tool_dialect(name);
            options.rules.max_model_len = 400;
          });
  };
  serve_dialect("hermes", "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>");
  const json::object free =
      reply("/v1/chat/completions", choice("auto", "g")).at("choices").at(0).as_object();
  EXPECT_EQ(free.at("finish_reason"), "tool_calls");
  EXPECT_THAT(engine_->last_request.grammar->text, HasSubstr("triggered_tags"));
  EXPECT_THAT(engine_->last_request.grammar->text, ::testing::Not(HasSubstr(R"(\"f)")));
  std::string prompt;
  for (const TokenId id : engine_->last_request.prompt) prompt += static_cast<char>(id);
  EXPECT_EQ(prompt, "user: Hi\n[2 tools]assistant: ");

  serve_dialect("pythonic", "[f(), g()]");  // a grammar cannot enforce calls in this dialect
  const json::object read =
      reply("/v1/chat/completions", choice("auto", "g")).at("choices").at(0).as_object();
  EXPECT_EQ(read.at("message").at("tool_calls").at(0).at("function").at("name"), "g");
  EXPECT_EQ(read.at("message").at("content"), "[f()");

  serve_text(R"([{"name":"g","parameters":{}}])");
  const json::object forced =
      reply("/v1/chat/completions", choice("required", "g")).at("choices").at(0).as_object();
  EXPECT_EQ(forced.at("message").at("tool_calls").as_array().size(), 1u);
  EXPECT_THAT(engine_->last_request.grammar->text, ::testing::Not(HasSubstr("\"f\"")));

  const auto param = [&](const std::string& body) {
    const http::Response refused = post("/v1/chat/completions", body);
    EXPECT_EQ(refused.status, 400) << refused.body;
    return std::string(json::parse(refused.body).at("error").at("param").as_string());
  };
  EXPECT_EQ(param(choice("none", "g")), "tool_choice.allowed_tools.mode");
  EXPECT_EQ(param(choice("auto", "h")), "tool_choice.allowed_tools.tools[0].function.name");
  EXPECT_EQ(param(kChat + kTwoTools + R"({"mode":"auto","tools":[]}}})"), "tool_choice.allowed_tools.tools");
  EXPECT_EQ(param(kChat + kTwoTools + "null}}"), "tool_choice.allowed_tools");
}

TEST_F(ServeTest, ThoughtsComeAsReasoning) {
  // The tokens '<' and '>' begin and end the reasoning.
  serve([](const Request&, int) { return Script{.tokens = ending("<I th>ink> {}>"), .tokens_per_step = 2}; },
        [](ServeOptions& options, http::ServerOptions&) {
          options.rules.reasoning = openai::ReasoningRule{.begin = '<', .end = '>', .from_start = true};
        });
  const json::object whole =
      reply("/v1/chat/completions", kChat + R"(,"response_format":{"type":"json_object"}})");
  const json::value& message = whole.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("reasoning"), "I th");
  EXPECT_EQ(message.at("content"), "ink> {}>");
  EXPECT_EQ(whole.at("usage").at("completion_tokens_details").at("reasoning_tokens"), 4);
  EXPECT_EQ(engine_->last_request.grammar_after, '>');

  std::string reasoning, content;
  for (const std::string& event : events(post("/v1/chat/completions", kChat + R"(,"stream":true})"))) {
    if (event == "[DONE]") continue;
    const json::value chunk = json::parse(event);
    const json::object& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (delta.contains("reasoning")) reasoning += delta.at("reasoning").as_string();
    if (delta.contains("content")) content += delta.at("content").as_string();
  }
  EXPECT_EQ(reasoning, "I th");
  EXPECT_EQ(content, "ink> {}>");

  const json::object hidden =
      reply("/v1/chat/completions",
            kChat + R"(,"include_reasoning":false,"logprobs":true,"return_token_ids":true})");
  const json::value& choice = hidden.at("choices").at(0);
  EXPECT_TRUE(choice.at("message").at("reasoning").is_null());
  EXPECT_EQ(choice.at("message").at("content"), "ink> {}>");
  EXPECT_EQ(choice.at("token_ids").as_array().size(), 9u);  // includes the end-of-text token
  EXPECT_EQ(choice.at("logprobs").at("content").as_array().size(), 9u);

  // In the first body the prompt has ended the reasoning; in the second the request disables reasoning.
  for (const std::string body :
       {R"({"messages":[{"role":"user","content":"<>"}]})",
        R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"enable_thinking":false}})"}) {
    serve_text_with_reasoning("abc");
    EXPECT_EQ(reply("/v1/chat/completions", body).at("choices").at(0).at("message").at("content"), "abc")
        << body;
    EXPECT_EQ(engine_->last_request.grammar_after, std::nullopt);
  }
  serve_text_with_reasoning("abc");
  const json::object thoughts = reply("/v1/chat/completions", kChat + "}");
  EXPECT_TRUE(thoughts.at("choices").at(0).at("message").at("content").is_null());
  EXPECT_EQ(thoughts.at("choices").at(0).at("message").at("reasoning"), "abc");
}

TEST_F(ServeTest, ThoughtsMarkedByWordsComeAsReasoning) {
  const auto serve_granite = [&](const std::string& answer) {
    serve([answer](const Request&, int) { return Script{.tokens = ending(answer), .tokens_per_step = 3}; },
          [](ServeOptions& options, http::ServerOptions&) {
            options.rules.reasoning = openai::reasoning_rule("granite", byte_tokenizer()).value();
          });
  };
  serve_granite("Here is my thought process: I th}ink Here is my response: {}");
  const json::object whole = reply("/v1/chat/completions", kChat + R"(,"stop":["}"]})");
  const json::value& cut = whole.at("choices").at(0).at("message");
  EXPECT_EQ(cut.at("reasoning"), " I th") << "stop strings count in thoughts, too";
  EXPECT_TRUE(cut.at("content").is_null());

  std::string reasoning, content;
  for (const std::string& event : events(post("/v1/chat/completions", kChat + R"(,"stream":true})"))) {
    if (event == "[DONE]") continue;
    const json::value chunk = json::parse(event);
    const json::object& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (delta.contains("reasoning")) reasoning += delta.at("reasoning").as_string();
    if (delta.contains("content")) content += delta.at("content").as_string();
  }
  EXPECT_EQ(reasoning, " I th}ink ");
  EXPECT_EQ(content, " {}");
  EXPECT_EQ(engine_->last_request.grammar_after, std::nullopt);

  serve_granite("{}");
  EXPECT_EQ(reply("/v1/chat/completions", kChat + R"(,"response_format":{"type":"json_object"}})")
                .at("choices")
                .at(0)
                .at("message")
                .at("content"),
            "{}");
}

// The engine receives the maximum number of reasoning tokens, and the number of reasoning tokens in the
// prompt.
TEST_F(ServeTest, ThoughtsHaveABudget) {
  const auto budget_of = [&](const std::string& path, const std::string& body) {
    serve_text_with_reasoning("abc");
    reply(path, body);
    return engine_->last_request.thinking_budget;
  };
  const std::string budget = R"(,"thinking_token_budget":5})";
  const auto chat = budget_of("/v1/chat/completions", kChat + budget);
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->begin, '<');
  EXPECT_EQ(chat->end, '>');
  EXPECT_EQ(chat->tokens, 5);
  EXPECT_EQ(chat->spent, 0);
  EXPECT_EQ(budget_of("/v1/completions", R"({"prompt":"a<bc")" + budget)->spent, 2);
  EXPECT_EQ(budget_of("/v1/completions", R"({"prompt":"a<b>c")" + budget)->spent, std::nullopt);
  EXPECT_FALSE(budget_of("/v1/chat/completions", kChat + R"(,"thinking_token_budget":-1})"));
  EXPECT_EQ(budget_of("/v1/messages", R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],
      "thinking":{"type":"enabled","budget_tokens":7}})")
                ->tokens,
            7);
  serve_text("abc");
  const http::Response refused = post("/v1/chat/completions", kChat + budget);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body).at("error").at("param"), "thinking_token_budget");
}

}  // namespace
}  // namespace octavo
