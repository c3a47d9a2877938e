// Namespaces and custom tools of /v1/responses, as Codex sends them.
#include <gmock/gmock.h>

#include <algorithm>

#include "grammar/tool_dialect.h"
#include "serve/openai/responses_tools.h"
#include "serve/serve_fixture.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTools = R"("tools":[
  {"type":"function","name":"close","parameters":{"type":"object","properties":{}}},
  {"type":"namespace","name":"agents","description":"Sub-agents","tools":[
    {"type":"function","name":"close","strict":null,"parameters":{"type":"object","properties":{"id":{"type":"integer"}}}}]},
  {"type":"custom","name":"apply_patch","description":"Edits files",
   "format":{"type":"grammar","syntax":"lark","definition":"start: \"*** Begin\""}},
  {"type":"web_search"}])";

class ResponsesToolsTest : public ServeTest {
 protected:
  json::object respond(std::string_view fields) {
    return reply("/v1/responses", fmt::format(R"({{"input":"Hi",{},{}}})", kTools, fields));
  }
  static std::string call_of(std::string_view name, std::string_view arguments) {
    return fmt::format(R"([{{"name":"{}","parameters":{}}}])", name, arguments);
  }
};

TEST_F(ResponsesToolsTest, ToolsOfANamespaceHaveSeparateNames) {
  serve_text(call_of("agents__close", R"({"id":7})"));
  const json::object response = respond(R"("tool_choice":"required")");
  const json::value& call = response.at("output").at(0);
  EXPECT_EQ(call.at("type"), "function_call");
  EXPECT_EQ(call.at("name"), "close");
  EXPECT_EQ(call.at("namespace"), "agents");
  EXPECT_EQ(json::parse(call.at("arguments").as_string()), json::parse(R"({"id":7})"));
  EXPECT_THAT(engine_->last_request.grammar->text, HasSubstr("agents__close"));

  serve_text(call_of("close", "{}"));
  EXPECT_FALSE(respond(R"("tool_choice":"required")").at("output").at(0).as_object().contains("namespace"));
}

TEST_F(ResponsesToolsTest, TheInputOfACustomToolIsText) {
  const std::string arguments = R"({"input":"*** Begin \"x\"\n"})";
  serve_text(call_of("apply_patch", arguments));
  const json::value call = respond(R"("tool_choice":"required")").at("output").at(0);
  EXPECT_EQ(call.at("type"), "custom_tool_call");
  EXPECT_EQ(call.at("name"), "apply_patch");
  EXPECT_EQ(call.at("input"), "*** Begin \"x\"\n");
  EXPECT_FALSE(call.as_object().contains("arguments"));

  serve_text(arguments);
  const json::value chosen =
      respond(R"("tool_choice":{"type":"custom","name":"apply_patch"})").at("output").at(0);
  EXPECT_EQ(chosen.at("input"), "*** Begin \"x\"\n");
}

// A client may continue a conversation that began at another server, which ran tools that this server does
// not have.
TEST_F(ResponsesToolsTest, CallsThatAnotherServerHasRunAreLeftOut) {
  serve_text("fine");
  reply("/v1/responses", R"({"input":[{"role":"user","content":"A"},
      {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},
      {"role":"assistant","content":"B"},{"role":"user","content":"C"}]})");
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: A\nassistant: B\nuser: C\nassistant: "));
  EXPECT_THAT(post("/v1/responses", R"({"input":[{"type":"image","url":"x"}]})").body,
              HasSubstr("image is not supported"));
}

// Calls of tools that OpenAI's models know have results, which the model needs.
TEST_F(ResponsesToolsTest, CallsThatAClientHasRunAreCallsOfFunctions) {
  serve_text("fine");
  reply("/v1/responses", R"({"input":[{"role":"user","content":"A"},
      {"type":"local_shell_call","id":"l","call_id":"1","status":"completed","action":{"type":"exec","command":["ls"]}},
      {"type":"local_shell_call_output","id":"1","output":"x"},
      {"type":"shell_call","call_id":"2","action":{"commands":["ls"]},"status":"completed"},
      {"type":"shell_call_output","call_id":"2","output":[{"stdout":"y"}]},
      {"type":"apply_patch_call","call_id":"3","operation":{"type":"delete_file","path":"a"},"status":"completed"},
      {"type":"apply_patch_call_output","call_id":"3","status":"completed"}]})");
  EXPECT_EQ(
      engine_->last_request.prompt,
      bytes_of("user: A\nassistant: \ntool: x\nassistant: \ntool: [{\"stdout\":\"y\"}]\nassistant: \ntool: "
               "completed\n"
               "assistant: "));
  serve_text(call_of("a", R"({"input":"x"})"));
  reply("/v1/responses", R"({"input":[{"role":"user","content":"A"},
      {"type":"tool_search_call","call_id":null,"execution":"server","arguments":{"query":"q"}},
      {"type":"tool_search_output","call_id":null,"execution":"server","tools":[{"type":"custom","name":"a"}]}],
      "tool_choice":"required"})");
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: A\n[1 tools]assistant: "));
  EXPECT_THAT(post("/v1/responses", R"({"input":[{"type":"shell_call_output","output":"x"}]})").body,
              HasSubstr("input[0].call_id"));
}

TEST_F(ResponsesToolsTest, ItemsOfTheInputAddTools) {
  serve_text(call_of("functions__exec", R"({"input":"ls"})"));
  const json::value call =
      reply("/v1/responses", R"({"input":[{"type":"additional_tools","role":"developer","tools":[
      {"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},
      {"role":"user","content":"A"}],"tool_choice":"required"})")
          .at("output")
          .at(0);
  EXPECT_EQ(call.at("type"), "custom_tool_call");
  EXPECT_EQ(call.at("name"), "exec");
  EXPECT_EQ(call.at("namespace"), "functions");
  EXPECT_EQ(call.at("input"), "ls");
  EXPECT_EQ(engine_->last_request.prompt, bytes_of("user: A\n[1 tools]assistant: "));
}

TEST_F(ResponsesToolsTest, AToolOfTheInputReplacesOneWithItsName) {
  serve_text(call_of("open", "{}"));
  const auto answer = post("/v1/responses", fmt::format(R"({{"input":[{{"role":"user","content":"A"}},
      {{"type":"tool_search_call","call_id":"1","arguments":{{"query":"q"}}}},
      {{"type":"tool_search_output","call_id":"1","tools":[{{"type":"custom","name":"apply_patch"}},
       {{"type":"function","name":"close"}},{{"type":"function","name":"open"}}]}}],"tool_choice":"required",{}}})",
                                                        kTools));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string prompt(engine_->last_request.prompt.begin(), engine_->last_request.prompt.end());
  EXPECT_THAT(prompt, HasSubstr("[4 tools]"));
  EXPECT_THAT(post("/v1/responses", R"({"input":[{"type":"additional_tools","tools":[{"type":"x"}]},
      {"role":"user","content":"A"}]})")
                  .body,
              HasSubstr("input[0].tools[0].type"));
}

TEST_F(ResponsesToolsTest, AStreamHasTheEventsOfCustomTools) {
  serve_text(R"({"input":"ab"})");
  std::string input, done;
  for (const std::string& event : events(post(
           "/v1/responses",
           fmt::format(
               R"({{"input":"Hi","stream":true,{},"tool_choice":{{"type":"custom","name":"apply_patch"}}}})",
               kTools)))) {
    const json::value got = json::parse(event);
    if (got.at("type") == "response.custom_tool_call_input.delta") input += got.at("delta").as_string();
    if (got.at("type") == "response.custom_tool_call_input.done") done = got.at("input").as_string();
    EXPECT_NE(got.at("type"), "response.function_call_arguments.delta");
  }
  EXPECT_EQ(input, "ab");
  EXPECT_EQ(done, "ab");
}

TEST_F(ResponsesToolsTest, TextsAndCallsOfOneStepKeepTheirOrder) {
  serve_texts_and_calls();
  const std::string body = R"({"input":"Hi","tools":[{"type":"function","name":"f"}])";
  const auto shown = [](const json::value& item) {
    const json::value& text =
        item.at("type") == "message" ? item.at("content").at(0).at("text") : item.at("name");
    return std::string(text.as_string()) + ' ';
  };
  std::string items;
  const json::object whole = reply("/v1/responses", body + "}");
  for (const json::value& item : whole.at("output").as_array()) items += shown(item);
  EXPECT_EQ(items, "One. f Two. f Three. ");
  items.clear();
  for (const std::string& event : events(post("/v1/responses", body + R"(,"stream":true})")))
    if (const json::value got = json::parse(event); got.at("type") == "response.output_item.done")
      items += shown(got.at("item"));
  EXPECT_EQ(items, "One. f Two. f Three. ");
}

TEST_F(ResponsesToolsTest, TextOfTheStepThatEndsALongCallFollowsTheCall) {
  int length = 1100;
  serve_long_call(length);
  for (; length < 1140; ++length) {
    std::string pieces, text;
    std::vector<std::string> items;
    for (const std::string& event : events(post("/v1/responses", R"({"input":"Hi","stream":true,
             "tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]})"))) {
      const json::value got = json::parse(event);
      const std::string type(got.at("type").as_string());
      if (type == "response.function_call_arguments.delta") pieces += got.at("delta").as_string();
      if (type == "response.output_text.delta") text += got.at("delta").as_string();
      if (type != "response.output_item.done") continue;
      const json::object& item = got.at("item").as_object();
      items.emplace_back(item.at("type").as_string());
      if (items.back() == "function_call") {
        EXPECT_EQ(item.at("arguments").as_string(), pieces);
      }
    }
    ASSERT_EQ(std::ranges::count(items, "function_call"), 1) << length;
    ASSERT_EQ(json::parse(pieces).at("x").as_string().size(), static_cast<std::size_t>(length));
    ASSERT_EQ(text, "Done.");
  }
}

TEST_F(ResponsesToolsTest, MalformedToolsAreRefused) {
  serve_text("x");
  const auto refused = [&](std::string_view tools) {
    const http::Response response =
        post("/v1/responses", fmt::format(R"({{"input":"Hi","tools":{}}})", tools));
    EXPECT_EQ(response.status, 400) << response.body;
    return std::string(json::parse(response.body).at("error").at("param").as_string());
  };
  EXPECT_EQ(refused(R"([{"type":"namespace","tools":[]}])"), "tools[0].name");
  EXPECT_EQ(refused(R"([{"type":"namespace","name":"a","tools":[{"type":"function"}]}])"),
            "tools[0].tools[0].name");
  EXPECT_EQ(refused(R"([{"type":"custom"}])"), "tools[0].name");
  EXPECT_EQ(refused(R"([{"type":"custom","name":"a","format":{"type":"x"}}])"), "tools[0].format.type");
  const std::string twice = R"({"type":"custom","name":"a"})";
  EXPECT_EQ(refused(fmt::format("[{},{}]", twice, twice)), "tools[1].name");
}

TEST_F(ResponsesToolsTest, ToolsOfOpenaisServersAreLeftOutBesideOthers) {
  serve_text("x");
  const auto tools = [](std::string_view type, bool others) {
    return fmt::format(R"({{"input":"Hi","tools":[{{"type":"{}"}}{}}})", type,
                       others ? R"(,{"type":"function","name":"f"}],"tool_choice":"none")" : "]");
  };
  for (const std::string_view type :
       {"web_search", "web_search_preview_2025_03_11", "file_search", "code_interpreter", "image_generation",
        "computer_use_preview", "local_shell", "shell", "apply_patch", "mcp", "tool_search"}) {
    EXPECT_EQ(post("/v1/responses", tools(type, true)).status, 200) << type;
    const http::Response alone = post("/v1/responses", tools(type, false));
    EXPECT_EQ(alone.status, 400) << type;
    EXPECT_THAT(alone.body, HasSubstr(fmt::format("tools[0].type: {} is not supported", type)));
  }
  const http::Response forced = post(
      "/v1/responses", fmt::format(R"({{"input":"Hi",{},"tool_choice":{{"type":"web_search"}}}})", kTools));
  EXPECT_EQ(forced.status, 400);
  EXPECT_THAT(forced.body, HasSubstr("tool_choice.type"));
}

TEST_F(ResponsesToolsTest, UnknownTypesOfToolsAreNamed) {
  serve_text("x");
  const auto error = [&](const std::string& tool) {
    const http::Response response =
        post("/v1/responses", R"({"input":"Hi","tools":[{"type":"function","name":"f"},)" + tool + "]}");
    EXPECT_EQ(response.status, 400) << tool;
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  };
  EXPECT_THAT(error(R"({"type":"bogus"})"),
              HasSubstr(R"(tools[1].type: must be function, custom or namespace, got "bogus")"));
  EXPECT_THAT(error(R"({"name":"f"})"), HasSubstr("tools[1].type: is missing"));
  EXPECT_THAT(error(R"({"type":"namespace","name":"a","tools":[{"type":"namespace","name":"b"}]})"),
              HasSubstr(R"(tools[1].tools[0].type: must be function or custom, got "namespace")"));
}

TEST(ResponsesTools, CustomInputSurvivesBrokenArguments) {
  EXPECT_EQ(openai::custom_tool_input(openai::custom_tool_arguments("a\"\n")), "a\"\n");
  EXPECT_EQ(openai::custom_tool_input("*** no JSON"), "*** no JSON");
  EXPECT_EQ(openai::custom_tool_input(R"({"other":1})"), R"({"other":1})");
}

}  // namespace
}  // namespace octavo
