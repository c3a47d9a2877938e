// Tests Anthropic's /v1/messages with the whole server.
#include <gmock/gmock.h>

#include <algorithm>

#include "grammar/tool_dialect.h"
#include "serve/anthropic/messages_request.h"
#include "serve/anthropic/tool_changes.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;

class MessagesTest : public ServeTest {
 protected:
  static std::string body(const std::string& fields, const std::string& messages = "") {
    return R"({"model":"demo","max_tokens":50,"messages":)" +
           (messages.empty() ? R"([{"role":"user","content":"Hi"}])" : messages) +
           (fields.empty() ? "" : "," + fields) + "}";
  }
  json::object message(const std::string& fields, const std::string& messages = "") {
    return reply("/v1/messages", body(fields, messages));
  }
  std::string prompt() const {
    std::string text;
    for (const TokenId id : engine_->last_request.prompt) text += static_cast<char>(id);
    return text;
  }
};

TEST_F(MessagesTest, AnswersInBlocks) {
  serve_text_with_reasoning("hm>Hello");
  const json::object got = message(R"("system":[{"type":"text","text":"Be kind."}])");
  EXPECT_EQ(prompt(), "system: Be kind.\nuser: Hi\nassistant: ");
  EXPECT_EQ(got.at("type"), "message");
  EXPECT_EQ(got.at("content").at(0).at("thinking"), "hm");
  EXPECT_EQ(got.at("content").at(1).at("text"), "Hello");
  EXPECT_EQ(got.at("stop_reason"), "end_turn");
  EXPECT_EQ(got.at("usage").at("output_tokens"), 9);
}

TEST_F(MessagesTest, StreamsBlocks) {
  serve_text("Hi");
  const http::Response response = post("/v1/messages", body(R"("stream":true)"));
  std::vector<std::string> types;
  std::string text;
  for (const std::string& event : events(response)) {
    const json::value value = json::parse(event);
    types.emplace_back(value.at("type").as_string());
    if (types.back() == "content_block_delta") text += value.at("delta").at("text").as_string();
    if (types.back() == "message_start") {
      EXPECT_EQ(value.at("message").at("usage").at("input_tokens"), 20);
    }
  }
  EXPECT_EQ(text, "Hi");
  EXPECT_EQ(types.front(), "message_start");
  EXPECT_EQ(types[1], "content_block_start");
  EXPECT_THAT(std::vector(types.end() - 3, types.end()),
              ElementsAre("content_block_stop", "message_delta", "message_stop"));
}

TEST_F(MessagesTest, TheUsageAtTheStartOfAStreamIsThatAtItsEnd) {
  serve([](const Request&, int) { return Script{.tokens = ending("Hi"), .cached = 16}; });
  const http::Response response = post("/v1/messages", body(R"("stream":true)"));
  const std::vector<std::string> all = events(response);
  json::object start = json::parse(all.front()).at("message").at("usage").as_object();
  EXPECT_EQ(start.at("input_tokens"), 4);
  EXPECT_EQ(start.at("cache_read_input_tokens"), 16);
  EXPECT_EQ(start.at("output_tokens"), 0);
  json::object end = json::parse(all[all.size() - 2]).at("usage").as_object();
  start.erase("output_tokens");
  end.erase("output_tokens");
  EXPECT_EQ(start, end);
}

TEST_F(MessagesTest, ALastMessageOfTheAssistantIsContinued) {
  serve_text("n");
  message("", R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"The"}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: The");
  message("", R"([{"role":"user","content":"Hi"},{"role":"assistant","content":""}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: \nassistant: ");
}

TEST_F(MessagesTest, StopSequences) {
  serve_text("abc<stop>def");
  const json::object cut = message(R"("stop_sequences":["<stop>"])");
  EXPECT_EQ(cut.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(cut.at("stop_sequence"), "<stop>");
}

TEST_F(MessagesTest, CallsAreBlocks) {
  serve_text(R"({"x": 1})");
  const std::string tools = R"("tools":[{"name":"f","input_schema":{"type":"object"}}],
      "tool_choice":{"type":"tool","name":"f"})";
  const json::object called = message(tools);
  EXPECT_EQ(called.at("stop_reason"), "tool_use");
  EXPECT_EQ(called.at("content").at(0).at("type"), "tool_use");
  EXPECT_EQ(called.at("content").at(0).at("input").at("x"), 1);
}

TEST_F(MessagesTest, TextsAndCallsOfOneStepKeepTheirOrder) {
  serve_texts_and_calls();
  std::string blocks;
  const json::object whole =
      reply("/v1/messages", R"({"model":"demo","max_tokens":3000,"messages":[{"role":"user","content":"Hi"}],
                                "tools":[{"name":"f","input_schema":{"type":"object"}}]})");
  for (const json::value& block : whole.at("content").as_array())
    blocks += std::string(block.at(block.at("type") == "text" ? "text" : "name").as_string()) + ' ';
  EXPECT_EQ(blocks, "One. f Two. f Three. ");
}

TEST_F(MessagesTest, TextOfTheStepThatEndsALongCallFollowsTheCall) {
  int length = 1100;
  serve_long_call(length);
  for (; length < 1140; ++length) {
    std::string input, text;
    std::vector<std::string> blocks;
    const std::string tools =
        R"("max_tokens":3000,"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}])";
    for (const std::string& event :
         events(post("/v1/messages",
                     R"({"model":"demo","messages":[{"role":"user","content":"Hi"}],)" + tools + "}"))) {
      const json::value got = json::parse(event);
      if (got.at("type") == "content_block_start")
        blocks.emplace_back(got.at("content_block").at("type").as_string());
      if (got.at("type") != "content_block_delta") continue;
      const json::object& delta = got.at("delta").as_object();
      if (delta.contains("partial_json")) input += delta.at("partial_json").as_string();
      if (delta.contains("text")) text += delta.at("text").as_string();
    }
    ASSERT_EQ(std::ranges::count(blocks, "tool_use"), 1) << length;
    ASSERT_EQ(json::parse(input).at("x").as_string().size(), static_cast<std::size_t>(length));
    ASSERT_EQ(text, "Done.");
  }
}

TEST_F(MessagesTest, ResultsOfToolsAreMessages) {
  serve_text("ok");
  message("", R"([{"role":"user","content":"Hi"},
      {"role":"assistant","content":[{"type":"text","text":"Let me see."},
        {"type":"tool_use","id":"t","name":"f","input":{"x":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"7"}]},
        {"type":"text","text":"And?"}]}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: Let me see.\ntool: 7\nuser: And?\nassistant: ");
}

TEST_F(MessagesTest, ResultsOfParallelCallsHaveTheOrderOfTheCalls) {
  serve_text("ok");
  message("", R"([{"role":"user","content":"Hi"},
      {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},
        {"type":"tool_use","id":"b","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"},
        {"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"And?"}]}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: \ntool: 1\ntool: 2\nuser: And?\nassistant: ");
}

// Without it, the last message would be the assistant's, and the answer would continue that message.
TEST_F(MessagesTest, AMessageWithoutTextIsAMessage) {
  serve_text("ok");
  for (const std::string content : {"[]", R"([{"type":"text","text":""}])"}) {
    message("", R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"},
        {"role":"user","content":)" +
                    content + "}]");
    EXPECT_EQ(prompt(), "user: Hi\nassistant: Yes\nuser: \nassistant: ") << content;
  }
}

TEST_F(MessagesTest, ResultsHaveImagesAndToolReferences) {
  openai::RequestRules rules;
  rules.model_names = {"demo"};
  rules.limits.vocab_size = 10;
  rules.max_model_len = 100;
  rules.images_max = 2;
  const json::value request = json::parse(body("", R"([{"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},
        {"type":"image","source":{"type":"url","url":"data:,x"}},{"type":"tool_reference","tool_name":"find"}]},
      {"type":"text","text":"And?"}]}])"));
  const auto read = anthropic::parse_messages_request(request.as_object(), rules);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->prompt.messages,
            R"([{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},)"
            R"({"type":"text","text":"find"}],"tool_call_id":"t"},)"
            R"({"role":"user","content":[{"type":"image"},{"type":"text","text":"And?"}]}])");
  ASSERT_EQ(read->prompt.media.size(), 1U);
  EXPECT_EQ(read->prompt.media[0].field, "messages[0].content[0].tool_result.content[2].image.source");
}

TEST_F(MessagesTest, ToolsChangeWithinAConversation) {
  openai::RequestRules rules;
  rules.tool_dialect = grammar::tool_dialect("hermes");
  rules.model_names = {"demo"};
  rules.limits.vocab_size = 10;
  rules.max_model_len = 100;
  const auto tools = [&](const std::string& changes) -> std::string {
    const json::value request = json::parse(
        R"({"model":"demo","max_tokens":1,"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}],
            "messages":[{"role":"user","content":"Hi"},{"role":"system","content":[)" +
        changes + "]}]}");
    const auto read = anthropic::parse_messages_request(request.as_object(), rules);
    if (!read) return read.error().field;
    std::string names;
    const json::value left = json::parse(read->prompt.tools);
    for (const json::value& tool : left.as_array())
      names += std::string(tool.at("function").at("name").as_string());
    return names;
  };
  EXPECT_EQ(tools(R"({"type":"text","text":"x"})"), "ab");
  EXPECT_EQ(tools(R"({"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}})"), "b");
  EXPECT_EQ(tools(R"({"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}},
                     {"type":"tool_addition","tool":{"type":"tool_reference","name":"a"}})"),
            "ba");
  EXPECT_EQ(tools(R"({"type":"tool_addition","tool":{"type":"tool_definition",
                      "definition":{"name":"c","input_schema":{}}}})"),
            "abc");
  EXPECT_EQ(tools(R"({"type":"tool_removal","tool":{"type":"tool_reference","name":"x"}})"),
            "messages[1].content[0].tool.name");
}

TEST_F(MessagesTest, ANewDefinitionReplacesTheOldOne) {
  const json::array tools = json::parse(R"([{"name":"a","description":"old"}])").as_array();
  const json::array messages = json::parse(R"([{"role":"system","content":[
      {"type":"tool_addition","tool":{"type":"tool_definition",
                                      "definition":{"name":"a","description":"new"}}},
      {"type":"tool_removal","tool":{"type":"tool_reference","name":"a"}},
      {"type":"tool_addition","tool":{"type":"tool_reference","name":"a"}}]}])")
                                   .as_array();
  const auto changed = anthropic::changed_tools(&tools, &messages);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(**changed, json::parse(R"([{"name":"a","description":"new"}])").as_array());
}

TEST_F(MessagesTest, ToolsAndTheirChangesHaveLimits) {
  const json::value tool = {{"name", "a"}};
  const json::value change = {{"type", "tool_addition"},
                              {"tool", {{"type", "tool_reference"}, {"name", "a"}}}};
  const auto read = [&](std::size_t tools, std::size_t changes) -> std::string {
    const json::array given(tools, tool);
    const json::value message = {{"role", "system"}, {"content", json::array(changes, change)}};
    const json::array messages(1, message);
    const auto changed = anthropic::changed_tools(&given, &messages);
    return changed ? "" : changed.error().field;
  };
  EXPECT_EQ(read(1024, 1), "");
  EXPECT_EQ(read(1025, 1), "tools");
  EXPECT_EQ(read(1, 4096), "");
  EXPECT_EQ(read(1, 4097), "messages");
}

TEST_F(MessagesTest, SearchResultsAreText) {
  openai::RequestRules rules;
  rules.model_names = {"demo"};
  rules.limits.vocab_size = 10;
  rules.max_model_len = 100;
  const json::value request = json::parse(body("", R"([{"role":"user","content":[
      {"type":"tool_result","tool_use_id":"t","content":[{"type":"search_result","source":"http://x","title":"T",
        "content":[{"type":"text","text":"found"}],"citations":{"enabled":true}}]}]}])"));
  const auto read = anthropic::parse_messages_request(request.as_object(), rules);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->prompt.messages, ::testing::HasSubstr(R"("T\nhttp://x\nfound")"));
}

TEST_F(MessagesTest, AllThoughtsOfAMessageAreKept) {
  openai::RequestRules rules;
  rules.model_names = {"demo"};
  rules.limits.vocab_size = 10;
  rules.max_model_len = 100;
  const json::value request =
      json::parse(body("", R"([{"role":"user","content":"Hi"},{"role":"assistant","content":[
      {"type":"thinking","thinking":"a","signature":"s"},{"type":"redacted_thinking","data":"x"},
      {"type":"thinking","thinking":"b","signature":""},{"type":"text","text":"c"}]}])"));
  const auto read = anthropic::parse_messages_request(request.as_object(), rules);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->prompt.messages, R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"c",)"
                                   R"("reasoning":"ab","reasoning_content":"ab"}])");
}

TEST_F(MessagesTest, ConstraintsAreNotIgnored) {
  serve_text("{}");
  message(R"("response_format":{"type":"json_object"})");
  EXPECT_EQ(engine_->last_request.grammar->kind, grammar::GrammarKind::json_object);
  for (const std::string name : {"guided_json", "grammar", "format"})
    EXPECT_EQ(post("/v1/messages", body('"' + name + R"(":{"const":1})")).status, 400) << name;
}

TEST_F(MessagesTest, OutputFormatBindsTheAnswer) {
  serve_text("1");
  for (const std::string field : {R"("output_config":{"format":)", R"("output_format":)"}) {
    message(field + R"({"type":"json_schema","schema":{"type":"integer"}})" +
            (field.contains('{') ? "}" : ""));
    ASSERT_TRUE(engine_->last_request.grammar) << field;
    EXPECT_EQ(engine_->last_request.grammar->text, R"({"type":"integer"})");
    EXPECT_TRUE(engine_->last_request.grammar->field.starts_with("output_")) << field;
  }
  EXPECT_EQ(post("/v1/messages", body(R"("output_format":{"type":"json_schema"})")).status, 400);
}

TEST_F(MessagesTest, CountsTokensAndSaysWhatIsWrong) {
  serve_text("x");
  EXPECT_EQ(reply("/v1/messages/count_tokens", body("")).at("input_tokens"), 20);
  const auto error = [&](const std::string& text) {
    const http::Response response = post("/v1/messages", text);
    const json::value value = json::parse(response.body);
    EXPECT_EQ(value.at("type"), "error");
    EXPECT_EQ(value.at("error").at("type"),
              response.status == 404 ? "not_found_error" : "invalid_request_error");
    return std::string(value.at("error").at("message").as_string());
  };
  EXPECT_EQ(error(R"({"messages":[{"role":"user","content":"Hi"}]})"), "max_tokens: is missing");
  EXPECT_EQ(error(body(R"("tool_choice":{"type":"any"},"tools":[{"name":"f"}])")),
            "tools[0].input_schema: is missing");
  EXPECT_EQ(error(body("", R"([{"role":"user","content":[{"type":"image"}]}])")),
            "messages[0].content[0].image.source: is missing");
  EXPECT_EQ(error(body("", R"([{"role":"user","content":[{"type":"image","source":{"type":"file"}}]}])")),
            "messages[0].content[0].image.source.type: must be \"base64\" or \"url\"");
  EXPECT_THAT(error(body("", R"([{"role":"user","content":[{"type":"image","source":
                {"type":"base64","media_type":"image/png","data":"AAAA"}}]}])")),
              ::testing::HasSubstr("demo is not a multimodal model"));
  EXPECT_THAT(error(body("", R"([{"role":"user","content":[{"type":"image","source":{"data":"AAAA"}}]}])")),
              ::testing::HasSubstr("demo is not a multimodal model"));
  EXPECT_EQ(error(body("", R"([{"role":"user","content":[{"type":"document"}]}])")),
            "messages[0].content[0].document.source: is missing");
  EXPECT_THAT(error(R"({"model":"nope","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]})"),
              ::testing::HasSubstr("model"));
}

TEST_F(MessagesTest, ErrorsNameItsOwnFields) {
  serve_text("x");
  const auto error = [&](const std::string& fields) {
    const http::Response refused = post("/v1/messages", body(fields));
    return std::string(json::parse(refused.body).at("error").at("message").as_string());
  };
  EXPECT_EQ(error(R"("tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"})"),
            "tool_choice.name: g is not in the list of tools");
  EXPECT_TRUE(error(R"("tools":[{"name":1,"input_schema":{}}])").starts_with("tools[0].name: "));
  EXPECT_TRUE(error(R"("output_config":{"effort":1})").starts_with("output_config.effort: "));
}

TEST_F(MessagesTest, DocumentsOfTextAreText) {
  serve_text("ok");
  message("", R"([{"role":"user","content":[{"type":"document","title":"a.txt","context":"A file.",
        "source":{"type":"text","media_type":"text/plain","data":"one"}},
      {"type":"tool_result","tool_use_id":"t","content":[{"type":"document","source":{"type":"content",
        "content":[{"type":"text","text":"two"}]}}]}]}])");
  EXPECT_EQ(prompt(), "tool: two\nuser: a.txt\nA file.\none\nassistant: ");
}

TEST_F(MessagesTest, ADocumentThatIsNotTextIsNamed) {
  serve_text("ok");
  const auto error = [&](const std::string& block) {
    const http::Response response =
        post("/v1/messages", body("", R"([{"role":"user","content":[)" + block + "]}]"));
    EXPECT_EQ(response.status, 400);
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  };
  const std::string pdf =
      R"({"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}})";
  EXPECT_THAT(error(pdf),
              ::testing::HasSubstr("content[0].document.source: application/pdf is not supported"));
  EXPECT_THAT(error(R"({"type":"tool_result","tool_use_id":"t","content":[)" + pdf + "]}"),
              ::testing::HasSubstr("content[0].tool_result.content[0].document.source: application/pdf"));
  EXPECT_THAT(error(R"({"type":"document","source":{"type":"file","file_id":"f"}})"),
              ::testing::HasSubstr("type \"file\" is not supported"));
}

TEST_F(MessagesTest, ToolsOfAnthropicsServersAreLeftOutBesideOthers) {
  serve_text(R"({"x": 1})");
  const std::string search = R"({"type":"web_search_20250305","name":"web_search","max_uses":8})";
  const auto tools = [&](const std::string& more, const std::string& choice) {
    return R"("tools":[)" + search + more + R"(],"tool_choice":)" + choice;
  };
  const std::string own = R"(,{"name":"f","input_schema":{"type":"object"}})";
  const json::object called = message(tools(own, R"({"type":"tool","name":"f"})"));
  EXPECT_EQ(called.at("content").at(0).at("name"), "f");
  const auto error = [&](const std::string& fields) {
    const http::Response response = post("/v1/messages", body(fields));
    EXPECT_EQ(response.status, 400) << fields;
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  };
  EXPECT_THAT(error(tools("", R"({"type":"auto"})")),
              ::testing::HasSubstr("tools[0].type: web_search_20250305"));
  EXPECT_THAT(error(tools(own, R"({"type":"tool","name":"web_search"})")),
              ::testing::HasSubstr("tools[0].type: web_search_20250305"));
  EXPECT_THAT(error(R"("tools":[{"type":"bash_20250124","name":"bash"})" + own + "]"),
              ::testing::HasSubstr("bash_20250124 is not supported: send a tool with an input_schema"));
}

TEST_F(MessagesTest, ResultsOfOtherServersAreLeftOut) {
  serve_text("ok");
  message("", R"([{"role":"user","content":"Hi"},{"role":"assistant","content":[
      {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
      {"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"Found."}]},
      {"role":"user","content":"And?"}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: Found.\nuser: And?\nassistant: ");
}

// From these words, agents learn that they must shorten the conversation or lower max_tokens.
TEST_F(MessagesTest, ErrorsOfTheContextHaveTheWordsThatAgentsFind) {
  serve_text("ok");
  const auto error = [&](const std::string& path, const std::string& text) {
    const http::Response response = post(path, text);
    EXPECT_EQ(response.status, 400);
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  };
  const std::string chat = R"([{"role":"user","content":")" + std::string(5'000, 'x') + R"("}])";
  for (const std::string path : {"/v1/messages", "/v1/chat/completions"}) {
    EXPECT_THAT(error(path, body("", chat)),
                ::testing::ContainsRegex("prompt is too long: [0-9]+ tokens > [0-9]+ maximum"))
        << path;
    EXPECT_THAT(error(path, body("", chat)),
                ::testing::ContainsRegex("This model's maximum context length is [0-9]+ tokens"))
        << path;
  }
  EXPECT_THAT(
      error("/v1/messages",
            R"({"model":"demo","max_tokens":100000,"messages":[{"role":"user","content":"Hi"}]})"),
      ::testing::ContainsRegex("input length and `max_tokens` exceed context limit: 20 \\+ 100000 > [0-9]+"));
}

TEST_F(MessagesTest, ModelsAreInAnthropicsFormForItsClients) {
  serve_text("x");
  const auto get = [&](const std::string& path, bool its_client) {
    http::Headers headers;
    if (its_client) headers.add("anthropic-version", "2023-06-01");
    return client().request("GET", path, "", headers).value();
  };
  const json::value list = json::parse(get("/v1/models", true).body);
  EXPECT_EQ(list.at("first_id"), "demo");
  EXPECT_EQ(list.at("last_id"), "org/alias");
  EXPECT_EQ(list.at("has_more"), false);
  EXPECT_EQ(list.at("data").at(0).at("type"), "model");
  EXPECT_EQ(list.at("data").at(0).at("display_name"), "demo");
  const http::Response one = get("/v1/models/org%2Falias", true);
  EXPECT_EQ(json::parse(one.body).at("id"), "org/alias");
  EXPECT_THAT(one.body, ::testing::ContainsRegex("\"created_at\":\"[0-9]{4}-[0-9]{2}-[0-9]{2}T"));
  const http::Response none = get("/v1/models/nope", true);
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(json::parse(none.body).at("error").at("type"), "not_found_error");
  EXPECT_EQ(json::parse(get("/v1/models", false).body).at("object"), "list") << "OpenAI's form for others";
}

TEST_F(MessagesTest, AnswersAndErrorsHaveTheIdOfTheRequest) {
  serve_text("x");
  const auto ask = [&](const std::string& text, const http::Headers& headers) {
    return client().request("POST", "/v1/messages", text, headers).value();
  };
  const http::Response got = ask(body(""), {{"X-Request-Id", "abc"}});
  EXPECT_EQ(got.headers.find("request-id"), "abc");
  EXPECT_EQ(json::parse(got.body).at("id"), "msg_abc") << "the log has this id";
  EXPECT_EQ(json::parse(got.body).at("usage").at("cache_creation_input_tokens"), 0);
  EXPECT_EQ(ask(body(R"("stream":true)"), {{"X-Request-Id", "abc"}}).headers.find("request-id"), "abc");
  const http::Response wrong = ask("{}", {});
  EXPECT_EQ(wrong.status, 400);
  const std::string id(wrong.headers.find("request-id").value_or(""));
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(json::parse(wrong.body).at("request_id"), json::value(id));
  const http::Response method = client().get("/v1/messages").value();
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(json::parse(method.body).at("type"), "error");
  EXPECT_TRUE(json::parse(method.body).as_object().contains("request_id"));
  EXPECT_FALSE(post("/v1/completions", kCompletion + "}").headers.find("request-id"));
}

TEST_F(MessagesTest, McpServersAreRefusedByName) {
  serve_text("x");
  const http::Response refused = post("/v1/messages", body(R"("mcp_servers":[{"type":"url","name":"a"}])"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, ::testing::HasSubstr("mcp_servers: is not supported, got 1 servers"));
  message(R"("mcp_servers":[])");
}

TEST_F(MessagesTest, ItsClientsShowTheirKeyInAFieldOfItsOwn) {
  serve([](const Request&, int) { return Script{.tokens = ending("x")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.access.api_keys = {"secret"}; });
  const auto status = [&](const std::string& key) {
    return client().request("POST", "/v1/messages", body(""), {{"X-Api-Key", key}}).value().status;
  };
  EXPECT_EQ(status("secret"), 200);
  EXPECT_EQ(status("wrong"), 401);
}

}  // namespace
}  // namespace octavo
