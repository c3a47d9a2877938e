// Tests Cohere's /v2/chat with the whole server.
#include <gmock/gmock.h>

#include "grammar/tool_dialect.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CohereChatTest : public ServeTest {
 protected:
  static std::string body(const std::string& fields, const std::string& messages = "") {
    const std::string most = fields.contains("max_tokens") ? "" : R"("max_tokens":50,)";
    return R"({"model":"demo",)" + most + R"("messages":)" +
           (messages.empty() ? R"([{"role":"user","content":"Hi"}])" : messages) +
           (fields.empty() ? "" : "," + fields) + "}";
  }
  json::object chat(const std::string& fields, const std::string& messages = "") {
    return reply("/cohere/v2/chat", body(fields, messages));
  }
  std::string refused(const std::string& text) {
    const http::Response response = post("/cohere/v2/chat", text);
    EXPECT_EQ(response.status, 400) << response.body;
    const json::object error = json::parse(response.body).as_object();
    EXPECT_EQ(error.size(), 1U) << response.body;
    return std::string(error.at("message").as_string());
  }
  std::string prompt() const {
    std::string text;
    for (const TokenId id : engine_->last_request.prompt) text += static_cast<char>(id);
    return text;
  }
  std::vector<json::object> stream(const std::string& fields) {
    std::vector<json::object> out;
    const http::Response response = post("/cohere/v2/chat", body(R"("stream":true)" + fields));
    EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
    for (const std::string& event : events(response))
      if (event != "[DONE]") out.push_back(json::parse(event).as_object());
    return out;
  }
  static std::vector<std::string> types(const std::vector<json::object>& events) {
    std::vector<std::string> out;
    for (const json::object& event : events) {
      std::string type(event.at("type").as_string());
      if (out.empty() || out.back() != type) out.push_back(std::move(type));
    }
    return out;
  }
};

TEST_F(CohereChatTest, AnswersInBlocks) {
  serve_text_with_reasoning("hm>Hello");
  const json::object got = chat(R"("temperature":0.5,"p":0.9,"k":7)", R"([
      {"role":"developer","content":"Be kind."}, {"role":"user","content":[{"type":"text","text":"Hi"}]}])");
  EXPECT_EQ(prompt(), "system: Be kind.\nuser: Hi\nassistant: ");
  EXPECT_EQ(got.at("message").at("role"), "assistant");
  EXPECT_EQ(json::serialize(got.at("message").at("content")),
            R"([{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hello"}])");
  EXPECT_EQ(got.at("finish_reason"), "COMPLETE");
  EXPECT_EQ(got.at("usage").at("tokens").at("output_tokens"), 9);
  EXPECT_EQ(got.at("usage").at("billed_units"), got.at("usage").at("tokens"));
  EXPECT_EQ(engine_->last_request.sampling.top_k, 7);
  EXPECT_FLOAT_EQ(static_cast<float>(engine_->last_request.sampling.top_p), 0.9F);
}

TEST_F(CohereChatTest, StreamsEvents) {
  serve_text_with_reasoning("hm>Hello");
  const std::vector<json::object> got = stream("");
  EXPECT_THAT(types(got), ElementsAre("message-start", "content-start", "content-delta", "content-end",
                                      "content-start", "content-delta", "content-end", "message-end"));
  std::string text, thoughts;
  for (const json::object& event : got) {
    if (event.at("type") != "content-delta") continue;
    const json::object& content = event.at("delta").at("message").at("content").as_object();
    if (const json::value* piece = content.if_contains("text")) text += piece->as_string();
    if (const json::value* piece = content.if_contains("thinking")) thoughts += piece->as_string();
    EXPECT_EQ(event.at("index"), content.contains("text") ? 1 : 0);
  }
  EXPECT_EQ(thoughts + "|" + text, "hm|Hello");
  EXPECT_EQ(got.front().at("id"), got.back().at("id"));
  EXPECT_EQ(got.back().at("delta").at("finish_reason"), "COMPLETE");
  EXPECT_EQ(got.back().at("delta").at("usage").at("tokens").at("output_tokens"), 9);
}

TEST_F(CohereChatTest, EndsForCoheresReasons) {
  serve_text("Hello");
  EXPECT_EQ(chat(R"("stop_sequences":["lo"])").at("finish_reason"), "STOP_SEQUENCE");
  EXPECT_EQ(chat(R"("max_tokens":2)").at("finish_reason"), "MAX_TOKENS");
}

TEST_F(CohereChatTest, LogprobsHaveTokenIds) {
  serve_text("ab");
  const json::array got = chat(R"("logprobs":true)").at("logprobs").as_array();
  ASSERT_GE(got.size(), 2U);
  EXPECT_EQ(got[0].at("text"), "a");
  EXPECT_EQ(got[0].at("token_ids"), json::array({'a'}));
  EXPECT_EQ(got[0].at("logprobs").as_array().size(), 1U);
  EXPECT_FALSE(chat("").contains("logprobs"));
}

TEST_F(CohereChatTest, HistoryHasPlansCallsAndDocuments) {
  serve_text("x");
  chat("", R"([{"role":"user","content":"Hi"},
               {"role":"assistant","tool_plan":"look","tool_calls":[{"id":"c","type":"function",
                "function":{"name":"f","arguments":"{}"}}]},
               {"role":"tool","tool_call_id":"c","content":[{"type":"document","document":{"data":"seen"}}]},
               {"role":"user","content":"So?"}])");
  EXPECT_THAT(prompt(), HasSubstr(R"({"data":"seen"})"));
}

TEST_F(CohereChatTest, ReasoningBeforeCallsIsAPlanOfOlderModels) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  for (const bool thinks : {true, false}) {
    const std::string text = R"(hm}<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>)";
    serve([&](const Request&, int) { return Script{.tokens = ending(text)}; },
          [&](ServeOptions& options, http::ServerOptions&) {
            options.rules.tool_dialect = grammar::tool_dialect("hermes");
            options.rules.reasoning = openai::ReasoningRule{.begin = '{', .end = '}', .from_start = true};
            options.features.cohere_thinking = thinks;
          });
    const json::object got = chat(R"("max_tokens":150,)" + tools);
    const json::object& message = got.at("message").as_object();
    EXPECT_EQ(got.at("finish_reason"), "TOOL_CALL");
    EXPECT_EQ(message.at("tool_calls").at(0).at("function").at("name"), "f");
    EXPECT_EQ(message.contains("content"), thinks);
    EXPECT_EQ(message.contains("tool_plan"), !thinks);
    const std::string before = thinks ? "content-start content-delta content-end " : "tool-plan-delta ";
    std::string order;
    for (const std::string& type : types(stream(R"(,"max_tokens":150,)" + tools))) order += type + ' ';
    EXPECT_THAT(order, StartsWith("message-start " + before + "tool-call-start "));
    EXPECT_THAT(order, EndsWith("tool-call-end message-end "));
  }
}

TEST_F(CohereChatTest, TemplatesGetDocumentsWithIdAndData) {
  template_ = ChatTemplate::compile("{{ documents | tojson }}{{ safety_mode }}", {}).value();
  serve_text("x");
  chat(R"("documents":["a",{"id":"d","data":{"title":"T"}}],"safety_mode":"STRICT")");
  const std::size_t end = prompt().find(']') + 1;
  EXPECT_EQ(json::parse(prompt().substr(0, end)),
            json::parse(R"([{"id":"doc_0","data":{"text":"a"}},{"id":"d","data":{"title":"T"}}])"));
  EXPECT_EQ(prompt().substr(end), "strict");
}

TEST_F(CohereChatTest, EnforcesTheSchemaUnderBothOfItsNames) {
  serve_text("{}");
  for (const std::string field : {"json_schema", "schema"}) {
    chat(R"("response_format":{"type":"json_object",")" + field + R"(":{"type":"integer"}})");
    ASSERT_TRUE(engine_->last_request.grammar) << field;
    EXPECT_EQ(engine_->last_request.grammar->text, R"({"type":"integer"})") << field;
  }
}

TEST_F(CohereChatTest, NamesCoheresFieldsInErrors) {
  serve_text("x");
  EXPECT_EQ(refused(R"({"messages":[{"role":"user","content":"Hi"}]})"), "model: is missing");
  EXPECT_THAT(refused(R"({"model":"demo","messages":[]})"), HasSubstr("messages: must be a list"));
  EXPECT_THAT(refused(body(R"("p":7)")), HasSubstr("p: "));
  EXPECT_THAT(refused(body(R"("stop_sequences":[""])")), HasSubstr("stop_sequences"));
  EXPECT_THAT(refused(body(R"("tool_choice":"REQUIRED")")), HasSubstr("needs at least one tool"));
  EXPECT_THAT(refused(body(R"("documents":[{"id":"a"}])")), HasSubstr("documents[0].data: "));
  EXPECT_THAT(refused(body(R"("thinking":{"type":"high"})")), HasSubstr("thinking.type: "));
  EXPECT_THAT(refused(body("", R"([{"role":"user"}])")), HasSubstr("messages[0].content: is missing"));
  EXPECT_THAT(refused(body("", R"([{"role":"king","content":"Hi"}])")), HasSubstr("messages[0].role: "));
}

TEST_F(CohereChatTest, RendersThePrompt) {
  serve_text("x");
  const json::object got =
      reply("/cohere/v2/chat/render", body(R"("temperature":0.125,"stop_sequences":["END"])"));
  EXPECT_EQ(got.at("token_ids").as_array().size(), 20U);
  EXPECT_EQ(got.at("sampling_params").at("temperature"), 0.125);
  EXPECT_EQ(got.at("sampling_params").at("stop"), json::array({"END"}));
  EXPECT_FALSE(got.contains("message"));
}

}  // namespace
}  // namespace octavo
