// Tests /v1/responses with the whole server.
#include <gmock/gmock.h>

#include "serve/openai/responses_request.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kPath = "/v1/responses";

class ResponsesTest : public ServeTest {
 protected:
  // Returns the prompt of the engine's last request.
  std::string prompt() const {
    std::string text;
    for (const TokenId id : engine_->last_request.prompt) text += static_cast<char>(id);
    return text;
  }
  std::vector<std::string> types(const http::Response& response) {
    std::vector<std::string> all;
    for (const std::string& event : events(response))
      all.emplace_back(json::parse(event).at("type").as_string());
    return all;
  }
  json::object respond(const std::string& fields) {
    return reply(std::string(kPath), R"({"model":"demo",)" + fields + "}");
  }
  http::Response get(const std::string& id) { return client().get(std::string(kPath) + "/" + id).value(); }
};

TEST_F(ResponsesTest, AnswersInItems) {
  serve_text("Hello");
  const json::object response = respond(R"("input":"Hi","instructions":"Be kind.")");
  EXPECT_EQ(prompt(), "system: Be kind.\nuser: Hi\nassistant: ");
  EXPECT_EQ(response.at("status"), "completed");
  EXPECT_EQ(response.at("instructions"), "Be kind.");
  const json::value& item = response.at("output").at(0);
  EXPECT_EQ(item.at("type"), "message");
  EXPECT_EQ(item.at("content").at(0).at("text"), "Hello");
  EXPECT_EQ(response.at("usage").at("output_tokens"), 6);
}

TEST_F(ResponsesTest, FieldsThatNameTheCallerAreShown) {
  serve_text("Hello");
  const json::object response = respond(
      R"("input":"Hi","user":"u","safety_identifier":"s","prompt_cache_key":"k","service_tier":"flex")");
  EXPECT_EQ(response.at("user"), "u");
  EXPECT_EQ(response.at("safety_identifier"), "s");
  EXPECT_EQ(response.at("prompt_cache_key"), "k");
  EXPECT_EQ(response.at("service_tier"), "flex");
  EXPECT_FALSE(respond(R"("input":"Hi")").contains("prompt_cache_key"));
}

TEST_F(ResponsesTest, CutOffIsIncomplete) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("abc"), .end = FinishReason::length}; });
  const json::object response = respond(R"("input":"Hi","max_output_tokens":3)");
  EXPECT_EQ(response.at("status"), "incomplete");
  EXPECT_EQ(response.at("incomplete_details").at("reason"), "max_output_tokens");
}

TEST_F(ResponsesTest, StreamsEveryEventInOrder) {
  serve_text_with_reasoning("hm>Hi");
  const http::Response response = post(std::string(kPath), R"({"input":"Hi","stream":true})");
  const std::vector<std::string> all = types(response);
  const auto first = [&](std::string_view type) { return std::ranges::find(all, type) - all.begin(); };
  EXPECT_THAT(std::vector(all.begin(), all.begin() + 5),
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.reasoning_text.delta"));
  EXPECT_LT(first("response.reasoning_text.done"), first("response.output_text.delta"));
  EXPECT_THAT(std::vector(all.end() - 4, all.end()),
              ElementsAre("response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.completed"));
  int sequence = 0;
  for (const std::string& event : events(response))
    EXPECT_EQ(json::parse(event).at("sequence_number"), sequence++);
  EXPECT_THAT(response.body, HasSubstr("event: response.output_text.delta\ndata: {"));
}

// A character of two tokens is sent with the second token, together with the log-probabilities of both
// tokens.
TEST_F(ResponsesTest, EveryTokenOfTheTextHasItsLogProbability) {
  serve_text_with_reasoning("hm>h\xC3\xA9");
  const std::string fields = R"("input":"Hi","include":["message.output_text.logprobs"])";
  const json::object whole = respond(fields);
  const json::value& content = whole.at("output").at(1).at("content").at(0);
  EXPECT_EQ(content.at("text"), "h\xC3\xA9");
  EXPECT_EQ(content.at("logprobs").as_array().size(), 4U) << "with the end of the text";
  json::array streamed;
  for (const std::string& event : events(post(std::string(kPath), "{\"stream\":true," + fields + "}"))) {
    const json::value got = json::parse(event);
    if (got.at("type") != "response.output_text.delta") continue;
    for (const json::value& one : got.at("logprobs").as_array()) streamed.push_back(one);
  }
  EXPECT_EQ(streamed, content.at("logprobs").as_array());
}

TEST_F(ResponsesTest, ShowsThePromptAndTheOutputOnRequest) {
  serve_text("Hello");
  const std::string fields = R"("input":"Hi","enable_response_messages":true)";
  const json::object response = respond(fields);
  const json::value& input = response.at("input_messages").at(0);
  EXPECT_EQ(input.at("type"), "raw_message_tokens");
  EXPECT_EQ(input.at("message"), "user: Hi\nassistant: ");
  EXPECT_EQ(input.at("tokens").as_array().size(), input.at("message").as_string().size());
  const json::value& output = response.at("output_messages").at(0);
  EXPECT_TRUE(std::string_view(output.at("message").as_string()).starts_with("Hello"));
  EXPECT_EQ(output.at("tokens").as_array().size(), 6U) << "with the end of the text";
  EXPECT_EQ(json::parse(get(std::string(response.at("id").as_string())).body), response);

  const auto all = events(post(std::string(kPath), "{\"stream\":true," + fields + "}"));
  const json::value last = json::parse(all.back());
  EXPECT_EQ(last.at("response").at("input_messages"), response.at("input_messages"));
  EXPECT_EQ(last.at("response").at("output_messages"), response.at("output_messages"));
  EXPECT_FALSE(respond(R"("input":"Hi")").contains("input_messages"));
  EXPECT_EQ(post(std::string(kPath), R"({"input":"Hi","previous_input_messages":[{}]})").status, 400);
}

TEST_F(ResponsesTest, AllowedToolsAreThoseOfChats) {
  serve_text(R"([{"name":"g","parameters":{}}])");
  const std::string tools =
      R"("input":"Hi","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}],
      "tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"mcp"}]})";
  const json::object response = respond(tools);
  EXPECT_EQ(response.at("output").at(0).at("name"), "g");
  EXPECT_EQ(response.at("tool_choice").at("mode"), "required");
  EXPECT_THAT(engine_->last_request.grammar->text, ::testing::Not(HasSubstr("\"f\"")));
}

TEST_F(ResponsesTest, FieldsOfChatsAreNotTakenInSilence) {
  serve_text("x");
  EXPECT_EQ(post(std::string(kPath), R"({"input":"Hi","response_format":{"type":"json_object"}})").status, 400);
  respond(R"("input":"Hi","text":{"format":{"type":"json_object","schema":{"const":7}}})");
  EXPECT_EQ(engine_->last_request.grammar->text, R"({"const":7})");
}

TEST_F(ResponsesTest, GoesOnFromAStoredOne) {
  serve_text("Hello");
  const json::object first = respond(R"("input":"Hi","instructions":"Be kind.")");
  const std::string id(first.at("id").as_string());
  const json::object second = respond(R"("input":"And?","previous_response_id":")" + id + "\"");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: Hello\nuser: And?\nassistant: ");
  EXPECT_EQ(json::parse(get(id).body), first);
  EXPECT_EQ(post(std::string(kPath), R"({"input":"a","previous_response_id":"resp_none"})").status, 404);

  const json::object third = respond(R"("input":"Hi","store":false)");
  EXPECT_EQ(get(std::string(third.at("id").as_string())).status, 404);
}

TEST_F(ResponsesTest, CallsAndTheirResultsAreMessages) {
  serve_text("ok");
  respond(R"("input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},
             {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
             {"type":"function_call_output","call_id":"c","output":"7"}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: \ntool: 7\nassistant: ");
}

TEST_F(ResponsesTest, NoItemOfTheHistoryIsLost) {
  openai::RequestRules rules;
  rules.model_names = {"demo"};
  rules.limits.vocab_size = 10;
  rules.max_model_len = 100;
  const json::value request = json::parse(R"({"input":[{"role":"user","content":"Hi"},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},
      {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"b"}]},
      {"role":"assistant","content":"c"},{"role":"assistant","content":"d"},
      {"type":"custom_tool_call","call_id":"p","name":"patch","input":"*** \"x\""},
      {"type":"custom_tool_call_output","call_id":"p","output":"done"}]})");
  const auto read = openai::parse_responses_request(request.as_object(), rules, openai::ResponseStore(1000));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->chat.prompt.messages,
            R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"c","reasoning":"a\nb",)"
            R"("reasoning_content":"a\nb"},{"role":"assistant","content":"d","tool_calls":[{"id":"p",)"
            R"("type":"function","function":{"name":"patch","arguments":{"input":"*** \"x\""}}}]},)"
            R"({"role":"tool","content":"done","tool_call_id":"p"}])");
}

TEST_F(ResponsesTest, AnUnfinishedMessageIsContinued) {
  serve_text("ok");
  const auto asks = [&](const std::string& status) {
    respond(R"("input":[{"role":"user","content":"Hi"},{"type":"message","role":"assistant","status":")" +
            status + R"(","content":[{"type":"output_text","text":"The best is"}]}])");
    return prompt();
  };
  EXPECT_EQ(asks("incomplete"), "user: Hi\nassistant: The best is");
  EXPECT_EQ(asks("in_progress"), "user: Hi\nassistant: The best is");
  EXPECT_EQ(asks("completed"), "user: Hi\nassistant: The best is\nassistant: ");
}

TEST_F(ResponsesTest, DeepAndLongValuesAreReadBack) {
  serve_text("ok");
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  const http::Response made = post("/v1/conversations", R"({"metadata":{"a":)" + deep + R"(,"b":1e400}})");
  EXPECT_EQ(made.status, 200);
  EXPECT_THAT(made.body, ::testing::HasSubstr(deep + R"(,"b":1e400)"));
  EXPECT_EQ(post("/v1/conversations", R"({"items":[1e400]})").status, 400) << "a number is no item";
}

TEST_F(ResponsesTest, AForcedCallIsAnItem) {
  serve_text(R"({"x": 1})");
  const std::string tools = R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],
      "tool_choice":{"type":"function","name":"f"})";
  const json::object response = respond(R"("input":"Hi",)" + tools);
  const json::value& call = response.at("output").at(0);
  EXPECT_EQ(call.at("type"), "function_call");
  EXPECT_EQ(call.at("name"), "f");
  EXPECT_EQ(call.at("arguments"), R"({"x": 1})");
  const std::vector<std::string> all =
      types(post(std::string(kPath), R"({"stream":true,"input":"Hi",)" + tools + "}"));
  EXPECT_THAT(all, ::testing::Contains("response.function_call_arguments.delta"));
  EXPECT_THAT(all, ::testing::Contains("response.function_call_arguments.done"));
}

TEST_F(ResponsesTest, ResultsOfParallelCallsHaveTheOrderOfTheCalls) {
  serve_text("ok");
  respond(R"("input":[{"role":"user","content":"Hi"},
      {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
      {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"b","output":"2"},
      {"type":"function_call_output","call_id":"a","output":"1"}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: \ntool: 1\ntool: 2\nassistant: ");
}

TEST_F(ResponsesTest, AnAnswerWithoutContentIsEmpty) {
  serve_text("ok");
  respond(R"("input":[{"role":"user","content":"Hi"},{"role":"assistant","content":null},
      {"role":"user","content":"Go"}])");
  EXPECT_EQ(prompt(), "user: Hi\nassistant: \nuser: Go\nassistant: ");
}

TEST_F(ResponsesTest, CountsTheTokensOfItsInput) {
  serve_text("ok");
  const json::object first = respond(R"("input":"Hi","instructions":"Be kind.")");
  const auto count = [&](const std::string& fields) {
    const json::object got = reply("/v1/responses/input_tokens", R"({"model":"demo",)" + fields + "}");
    EXPECT_EQ(got.at("object"), "response.input_tokens");
    return got.at("input_tokens").to_number<std::size_t>();
  };
  EXPECT_EQ(count(R"("input":"Hi","instructions":"Be kind.")"), first.at("usage").at("input_tokens"));
  const std::string next =
      R"("input":"Go","previous_response_id":")" + std::string(first.at("id").as_string()) + '"';
  EXPECT_EQ(count(next), respond(next).at("usage").at("input_tokens"));
}

TEST_F(ResponsesTest, ASummaryReplacesAConversation) {
  serve([](const Request&, int) { return Script{.tokens = ending("All is well")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.rules.max_model_len = 1000; });
  const std::string items = R"("input":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"},
      {"role":"user","content":"Go"}])";
  const json::object compacted = reply("/v1/responses/compact", R"({"model":"demo",)" + items + "}");
  EXPECT_EQ(compacted.at("object"), "response.compaction");
  EXPECT_GT(compacted.at("usage").at("input_tokens").to_number<int>(), 20);
  EXPECT_THAT(prompt(), HasSubstr("user: Go\nuser: Write a summary"));
  const json::array& output = compacted.at("output").as_array();
  ASSERT_EQ(output.size(), 3U) << "the user's messages and the summary";
  EXPECT_EQ(output[1].at("content").at(0).at("text"), "Go");
  EXPECT_EQ(output[2].at("type"), "compaction");
  json::array next = output;
  next.push_back({{"role", "user"}, {"content", "And now?"}});
  respond("\"input\":" + json::serialize(next));
  EXPECT_EQ(prompt(),
            "user: Hi\nuser: Go\nuser: Summary of the earlier conversation:\nAll is well\n"
            "user: And now?\nassistant: ");
  const std::string id(respond(items).at("id").as_string());
  reply("/v1/responses/compact", R"({"previous_response_id":")" + id + R"("})");
  EXPECT_THAT(prompt(), HasSubstr("user: Go\nassistant: All is well\nuser: Write a summary"));
  EXPECT_THAT(post("/v1/responses", R"({"input":[{"type":"compaction","encrypted_content":"YWJj"}]})").body,
              HasSubstr("input[0].encrypted_content"));
}

TEST_F(ResponsesTest, AStoredResponseIsNotStreamed) {
  serve_text("ok");
  const std::string id(respond(R"("input":"Hi")").at("id").as_string());
  EXPECT_EQ(get(id + "?stream=false").status, 200);
  const http::Response refused = get(id + "?stream=true&starting_after=3");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body).at("error").at("param"), "stream");
}

TEST_F(ResponsesTest, BackgroundIsReadLaterOrCancelled) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("a"), .hang = true}; });
  const json::object pending = respond(R"("input":"Hi","background":true)");
  EXPECT_EQ(pending.at("status"), "queued");
  const std::string id(pending.at("id").as_string());
  EXPECT_EQ(json::parse(get(id).body).at("status"), "in_progress");
  const auto cancel = [&] { return json::parse(post(std::string(kPath) + "/" + id + "/cancel", "").body); };
  EXPECT_EQ(cancel().at("status"), "cancelled");
  EXPECT_TRUE(eventually([&] { return json::parse(get(id).body).as_object().contains("usage"); }));
  EXPECT_EQ(engine_->running(), 0);
  EXPECT_EQ(json::parse(get(id).body).at("status"), "cancelled");
  EXPECT_EQ(cancel(), json::parse(get(id).body)) << "a second cancel changes nothing";
}

TEST_F(ResponsesTest, ADeletedResponseEndsAndStaysDeleted) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("a"), .hang = true}; });
  const std::string id(respond(R"("input":"Hi","background":true)").at("id").as_string());
  EXPECT_EQ(client().request("DELETE", std::string(kPath) + "/" + id)->status, 200);
  EXPECT_TRUE(eventually([&] { return engine_->running() == 0; }));
  EXPECT_TRUE(eventually([&] { return client().get("/load")->body.contains(R"("server_load":0)"); }));
  EXPECT_EQ(get(id).status, 404);
}

// Vercel's AI SDK sends the items of earlier responses by their ids.
TEST_F(ResponsesTest, AReferenceIsTheItemOfAStoredResponse) {
  serve_text("Hello");
  const std::string id(respond(R"("input":"Hi")").at("output").at(0).at("id").as_string());
  const auto after = [&](const std::string& item) {
    return post("/v1/responses",
                R"({"input":[{"role":"user","content":"Hi"},{"type":"item_reference","id":")" + item +
                    R"("},{"role":"user","content":"And?"}]})");
  };
  EXPECT_EQ(after(id).status, 200);
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: Hi\nassistant: Hello\nuser: And?\nassistant: "));
  const http::Response unknown = after("msg_none");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("input[1].id"));
}

TEST_F(ResponsesTest, ListsTheItemsOfItsInput) {
  serve_text("Hello");
  const std::string first(respond(R"("input":"Hi")").at("id").as_string());
  const std::string id(
      respond(R"("previous_response_id":")" + first +
              R"(","input":[{"role":"user","content":[{"type":"input_text","text":"And?"}],"id":"own"}])")
          .at("id")
          .as_string());
  const auto list = [&](const std::string& query) {
    return json::parse(get(id + "/input_items" + query).body).as_object();
  };
  const json::object all = list("?order=asc");
  EXPECT_EQ(all.at("object"), "list");
  EXPECT_EQ(all.at("has_more"), false);
  ASSERT_EQ(all.at("data").as_array().size(), 3U) << "without the output, with the items before";
  EXPECT_EQ(all.at("data").at(0).at("content").at(0).at("text"), "Hi");
  EXPECT_EQ(all.at("data").at(1).at("role"), "assistant");
  EXPECT_EQ(all.at("last_id"), "own");
  EXPECT_NE(all.at("first_id"), json::parse(get(id).body).at("output").at(0).at("id"));
  EXPECT_EQ(list("").at("first_id"), "own") << "the newest is first";
  EXPECT_EQ(list("?order=asc"), all) << "ids stay";
  const json::object page = list("?order=asc&limit=1&after=" + std::string(all.at("first_id").as_string()));
  EXPECT_EQ(page.at("data").at(0), all.at("data").at(1));
  EXPECT_EQ(page.at("has_more"), true);
  EXPECT_EQ(get(id + "/input_items?limit=0").status, 400);
  EXPECT_EQ(get(id + "/input_items?after=none").status, 404);
  EXPECT_EQ(get("resp_none/input_items").status, 404);
}

TEST_F(ResponsesTest, InputItemsAreThereBeforeTheEnd) {
  serve([](const Request&, int) { return Script{.tokens = bytes_of("a"), .hang = true}; });
  const std::string id(respond(R"("input":"Hi","background":true)").at("id").as_string());
  const json::value list = json::parse(get(id + "/input_items").body);
  EXPECT_EQ(list.at("data").at(0).at("content").at(0).at("text"), "Hi");
  EXPECT_EQ(post(std::string(kPath) + "/" + id + "/cancel", "").status, 200);
}

TEST_F(ResponsesTest, TheStoreIsBounded) {
  serve([](const Request&, int) { return Script{.tokens = ending("Hello")}; },
        [](ServeOptions& options, http::ServerOptions&) { options.response_store_bytes = 8 << 10; });
  const std::string first(respond(R"("input":"Hi")").at("id").as_string());
  EXPECT_EQ(get(first).status, 200);
  std::string last;
  for (int i = 0; i < 8; ++i) last = respond(R"("input":"Hi")").at("id").as_string();
  EXPECT_EQ(get(last).status, 200);
  EXPECT_EQ(get(first).status, 404);
}

TEST_F(ResponsesTest, ErrorsNameItsOwnFields) {
  serve_text("x");
  const auto field = [&](const std::string& body) {
    const http::Response response = post(std::string(kPath), "{" + body + "}");
    EXPECT_EQ(response.status, 400) << response.body;
    return std::string(json::parse(response.body).at("error").at("param").as_string());
  };
  EXPECT_EQ(field(""), "input");
  EXPECT_EQ(field(R"("input":[])"), "input");
  EXPECT_EQ(field(R"("input":[{"type":"item_reference","id":"x"}])"), "input[0].id");
  EXPECT_EQ(field(R"("input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}])"),
            "input[0].content[0].image_url");
  EXPECT_EQ(field(R"("input":"a","background":true,"store":false)"), "background");
  EXPECT_EQ(field(R"("input":"a","prompt":{"id":"x"})"), "prompt");
  EXPECT_EQ(field(R"("input":"a","truncation":"middle")"), "truncation");
  EXPECT_EQ(field(R"("input":"a","include":["reasoning.encrypted_content","message.logprobs"])"), "include");
  EXPECT_EQ(field(R"("input":"a","tools":[{"type":"function","name":"f"}],
                     "tool_choice":{"type":"function","name":"g"})"),
            "tool_choice.name");
  EXPECT_EQ(field(R"("input":"a","tools":[{"type":"function","name":"f","strict":"x"}])"), "tools[0].strict");
  EXPECT_EQ(field(R"("input":"a","tools":[{"type":"function"}])"), "tools[0].name");
  EXPECT_EQ(field(R"("input":"a","reasoning":{"effort":1})"), "reasoning.effort");
  EXPECT_EQ(field(R"("input":"a","text":{"format":{"type":"grammar"}})"), "text.format.type");
  EXPECT_EQ(field(R"("input":"a","text":{"format":{"type":"json_schema","name":"x"}})"),
            "text.format.schema");
  const http::Response unknown = post(std::string(kPath), R"({"input":"a","previous_response_id":"resp_x"})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body).at("error").at("param"), "previous_response_id");
}

}  // namespace
}  // namespace octavo
