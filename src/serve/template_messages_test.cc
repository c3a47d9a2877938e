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

std::string rendered(std::string_view source, std::string_view messages, ContentFormat format = {}) {
  const ChatTemplate chat_template = ChatTemplate::compile(source, {}).value();
  const boost::json::object body{{"messages", boost::json::parse(messages)}};
  openai::Fields fields(body);
  const openai::ChatPrompt prompt = openai::read_chat_prompt(fields, {}).value();
  const std::string fitted = messages_for_template(chat_template, prompt, {.format = format});
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

}  // namespace
}  // namespace octavo
