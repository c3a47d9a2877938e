#include "serve/template_messages.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace octavo {
namespace {

const std::string kBody = "{{ '<' + m.role + '>' + m.content + '\n' }}";
// A template that prints only three roles, like the templates of Qwen3, GLM and SmolLM3.
const std::string kDrops = "{%- for m in messages %}{%- if m.role in ['system', 'user', 'assistant'] %}" + kBody +
                           "{%- endif %}{%- endfor %}";
// A template that raises an error if a system message is not first, like Qwen3.5's template.
const std::string kRaises = "{%- for m in messages %}{%- if m.role == 'system' and not loop.first %}"
                            "{{ raise_exception('System message must be at the beginning.') }}{%- elif m.role not in "
                            "['system', 'user', 'assistant'] %}{{ raise_exception('Unexpected role.') }}{%- endif %}" +
                            kBody + "{%- endfor %}";
const std::string kDeveloper = "{%- for m in messages %}{%- if m.role == 'developer' or true %}" + kBody +
                               "{%- endif %}{%- endfor %}";
constexpr std::string_view kParts =
    "{%- for m in messages %}{{ '<' + m.role + '>' }}{%- if m.content is string %}{{ m.content }}{%- else %}{%- for "
    "part in m.content %}{%- if part.type == 'text' %}{{ part.text }}{%- endif %}{%- endfor %}{%- endif %}{{ '\n' "
    "}}{%- endfor %}";

std::string rendered(std::string_view source, std::string_view messages, ContentFormat format = {},
                     std::string_view tools = {}, std::string_view choice = {}) {
  const ChatTemplate chat_template = ChatTemplate::compile(source, {}).value();
  boost::json::object body{{"messages", boost::json::parse(messages)}};
  if (!tools.empty()) body["tools"] = boost::json::parse(tools);
  if (!choice.empty()) body["tool_choice"] = choice;
  openai::Fields fields(body);
  openai::RequestRules rules;
  rules.tool_dialect = grammar::tool_dialect("hermes");
  const openai::ChatPrompt prompt = openai::read_chat_prompt(fields, rules).value();
  const std::string fitted =
      messages_for_template(chat_template, prompt, {.format = format, .write_tools = true}).value();
  const auto text = chat_template.render({.messages = fitted, .add_generation_prompt = false});
  return text ? *text : text.error().message;
}

TEST(TemplateMessages, DeveloperIsSystemWhereTheTemplateHasNoSuchRole) {
  constexpr std::string_view kChat = R"([{"role":"developer","content":"RULES"},{"role":"user","content":"hi"}])";
  for (const std::string& source : {kDrops, kRaises})
    EXPECT_EQ(rendered(source, kChat), "<system>RULES\n<user>hi\n") << source;
  EXPECT_EQ(rendered(kDeveloper, kChat), "<developer>RULES\n<user>hi\n");
}

TEST(TemplateMessages, SystemMessagesBetweenTurnsAreNotLost) {
  constexpr std::string_view kChat =
      R"([{"role":"system","content":"RULES"},{"role":"developer","content":"MORE"},{"role":"user","content":"hi"},
          {"role":"assistant","content":"yo"},{"role":"system","content":[{"type":"text","text":"NOW"}]},
          {"role":"user","content":"go"}])";
  EXPECT_EQ(rendered(kRaises, kChat), "<system>RULES\n\nMORE\n\nNOW\n<user>hi\n<assistant>yo\n<user>go\n");
  EXPECT_EQ(rendered(kDrops, kChat),
            "<system>RULES\n<system>MORE\n<user>hi\n<assistant>yo\n<system>NOW\n<user>go\n");
}

TEST(TemplateMessages, ARoleThatTheTemplateDoesNotPrintIsRefused) {
  const auto error = [](const std::string& source, const std::string& messages) {
    const ChatTemplate chat_template = ChatTemplate::compile(source, {}).value();
    const ChatInput input{.messages = messages, .add_generation_prompt = false};
    const auto checked = check_roles(chat_template, input, chat_template.render(input).value());
    return checked ? "" : checked.error().message;
  };
  const auto message = [](const std::string& role) {
    return R"({"role":")" + role + R"(","content":"TEXT"})";
  };
  const std::string user = message("user");
  const auto among = [&](const std::string& role) {
    return "[" + user + "," + message(role) + "," + user + "]";
  };
  const std::string refused =
      "the model's chat template prints nothing for the role \"bot\": use system, user, "
      "assistant or tool";
  EXPECT_EQ(error(kDrops, among("bot")), refused);
  EXPECT_NE(error(kDrops, among("function")), "");
  EXPECT_EQ(error(kDrops, among("assistant")), "");
  EXPECT_EQ(error(kDeveloper, among("bot")), "");
  EXPECT_EQ(error(kDrops, "[" + message("bot") + "]"), refused) << "no other message";
  // one role is printed, the other one is not
  const std::string two =
      "{%- for m in messages %}{%- if m.role in ['user', 'critic'] %}" + kBody + "{%- endif %}{%- endfor %}";
  EXPECT_EQ(error(two, "[" + message("critic") + "," + message("bot") + "]"), refused);
  // a role whose presence changes the prompt, although its text is not printed
  const std::string control = "{%- for m in messages %}{%- if m.role == 'control' %}THINK{%- else %}" +
                              kBody + "{%- endif %}{%- endfor %}";
  EXPECT_EQ(error(control, among("control")), "");
}

TEST(TemplateMessages, PartsGoWhereTheTemplateGoesThroughThem) {
  constexpr std::string_view kChat =
      R"([{"role":"user","content":[{"type":"text","text":"AAA"},{"type":"text","text":"BBB"}]}])";
  EXPECT_EQ(rendered(kParts, kChat), "<user>AAABBB\n");
  EXPECT_EQ(rendered(kDrops, kChat), "<user>AAA\nBBB\n");
  EXPECT_EQ(rendered(kParts, kChat, ContentFormat::string), "<user>AAA\nBBB\n");
  EXPECT_EQ(rendered(kParts, R"([{"role":"user","content":"AAA"}])", ContentFormat::parts), "<user>AAA\n");
}

// A conversation with a tool whose answers contain a call and its result.
constexpr std::string_view kNow =
    R"([{"type":"function","function":{"name":"now","parameters":{"type":"object"}}}])";
constexpr std::string_view kCalls =
    R"([{"role":"user","content":"time?"},{"role":"assistant","content":"Wait.","tool_calls":[
        {"id":"1","type":"function","function":{"name":"now","arguments":"{\"zone\": \"UTC\"}"}},
        {"id":"2","type":"function","function":{"name":"now","arguments":"{"}}]},
        {"role":"tool","tool_call_id":"1","content":"12:00"},
        {"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"no"}]},
        {"role":"user","content":"and?"}])";
const std::string kDefinitions =
    "# Tools\n\nYou may call these functions, listed inside <tools></tools>:\n<tools>\n"
    R"({"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}})"
    "\n</tools>\n\nTo call one, write its name and arguments as JSON:\n<tool_call>\n"
    R"({"name": <function-name>, "arguments": <args-json-object>})"
    "\n</tool_call>";
const std::string kTurns =
    "<assistant>Wait.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": \"UTC\"}}\n"
    "</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}\n</tool_call>\n"
    "<user><tool_response>\n12:00\n</tool_response>\n<tool_response>\nno\n</tool_response>\n"
    "and?\n";

TEST(TemplateMessages, ToolsAndCallsAreTextIfTheTemplateReadsNoTools) {
  const std::string user = "<user>time?\n";
  EXPECT_EQ(rendered(kDrops, kCalls, {}, kNow), "<system>" + kDefinitions + "\n" + user + kTurns);
  EXPECT_EQ(rendered(kDrops, kCalls), user + kTurns);
  const std::string with_system = R"([{"role":"system","content":"RULES"},{"role":"user","content":"hi"}])";
  EXPECT_EQ(rendered(kDrops, with_system, {}, kNow), "<system>RULES\n\n" + kDefinitions + "\n<user>hi\n");
}

TEST(TemplateMessages, ToolsAreInTheUsersMessageIfTheTemplateHasNoSystemMessages) {
  const std::string source =
      "{%- for m in messages %}{%- if m.role == 'system' %}{{ raise_exception('no system') }}{%- "
      "endif %}" +
      kBody + "{%- endfor %}";
  EXPECT_EQ(rendered(source, R"([{"role":"user","content":"hi"}])", {}, kNow),
            "<user>" + kDefinitions + "\n\nhi\n");
}

TEST(TemplateMessages, AListOfPartsHasTheToolsAsAPart) {
  EXPECT_EQ(
      rendered(kParts,
               R"([{"role":"system","content":[{"type":"text","text":"A"}]},{"role":"user","content":"hi"}])",
               {}, kNow),
      "<system>A\n\n" + kDefinitions + "\n<user>hi\n");
}

TEST(TemplateMessages, WithoutCallsTheToolsAreNotWritten) {
  constexpr std::string_view kHi = R"([{"role":"user","content":"hi"}])";
  EXPECT_EQ(rendered(kDrops, kHi, {}, kNow, "none"), "<user>hi\n");
}

TEST(TemplateMessages, ATemplateThatPrintsCallsKeepsThem) {
  const std::string prints =
      "{%- for m in messages %}{{ '<' + m.role + '>' + m.content }}{{ m.tool_calls | length if "
      "m.tool_calls else '' }}{%- endfor %}";
  EXPECT_EQ(rendered(prints, kCalls), "<user>time?<assistant>Wait.2<tool>12:00<tool>no<user>and?");
}

TEST(TemplateMessages, ATemplateThatReadsToolsGetsThem) {
  const std::string reads = "{{ tools | tojson if tools }}" + kDrops;
  EXPECT_TRUE(rendered(reads, R"([{"role":"user","content":"hi"}])", {}, kNow).ends_with("<user>hi\n"));
}

}  // namespace
}  // namespace octavo
