#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>

#include <cstdlib>

#include "text/fixtures.h"

namespace octavo {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

const std::vector<SpecialToken> kTokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

Result<std::string> render(std::string_view source, std::string_view messages = "[]",
                           std::string_view kwargs = "", const ChatTemplateLimits& limits = {}) {
  TRY(const ChatTemplate chat, ChatTemplate::compile(source, kTokens, limits));
  return chat.render({.messages = messages, .kwargs = kwargs});
}

std::string error_of(std::string_view source, std::string_view messages = "[]",
                     std::string_view kwargs = "") {
  const Result<std::string> text = render(source, messages, kwargs);
  return text ? "no error, but: " + text->substr(0, 100) : text.error().message;
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(fixtures::kRoot / "templates")) {
    names.push_back(file.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

// Results equal those of json.loads and json.dumps.
TEST(ChatTemplate, WholeNumbersOfAnySize) {
  for (const std::string n : {"18446744073709551616", "-9223372036854775809", "170141183460469231731687303715884105728",
                              "123456789012345678901234567890123456789012345678901234567890"}) {
    const std::string messages = R"([{"a": {"id": )" + n + "}}]";
    EXPECT_EQ(render("{{ messages[0].a | tojson }}", messages).value(), R"({"id": )" + n + "}");
    EXPECT_EQ(render("{{ messages[0].a.id }}", messages).value(), n);
    EXPECT_EQ(render("{{ messages[0].a }}", messages).value(), "{'id': " + n + "}");
  }
}

class ChatTemplateGolden : public testing::TestWithParam<std::string> {};

TEST_P(ChatTemplateGolden, RendersAsTransformersDoes) {
  setenv("TZ", "UTC", 1);
  const json::value fixture = fixtures::read_json("conversations.json");
  const json::value expected = fixtures::read_json("expected/" + GetParam() + ".json");
  const std::string source =
      read_text_file(fixtures::kRoot / "templates" / (GetParam() + ".jinja"), 1u << 20).value();
  std::vector<SpecialToken> tokens;
  for (const auto& [name, text] : fixture.at("special_tokens").as_object()) {
    tokens.push_back({std::string(name), fixtures::text(text)});
  }
  const ChatTemplate chat = ChatTemplate::compile(source, tokens).value();
  const json::array& conversations = fixture.at("conversations").as_array();
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    SCOPED_TRACE(fmt::format("conversation {}", i));
    const json::object& conversation = conversations[i].as_object();
    const auto part = [&](std::string_view key) {
      return conversation.contains(key) ? json::serialize(conversation.at(key)) : std::string();
    };
    const std::string messages = part("messages"), tools = part("tools"), documents = part("documents"),
                      kwargs = part("kwargs");
    const Result<std::string> text =
        chat.render({.messages = messages,
                     .tools = tools,
                     .documents = documents,
                     .kwargs = kwargs,
                     .add_generation_prompt = conversation.at("add_generation_prompt").as_bool(),
                     .continue_final_message = conversation.contains("continue_final_message"),
                     .now = std::chrono::system_clock::from_time_t(fixture.at("now").as_int64())});
    const json::object& want = expected.at(i).as_object();
    if (want.contains("text")) {
      ASSERT_TRUE(text.has_value()) << text.error().message;
      EXPECT_EQ(*text, fixtures::text(want.at("text")));
    } else {
      ASSERT_FALSE(text.has_value()) << "transformers refuses: " << want.at("error").as_string()
                                     << "\nhere: " << *text;
      EXPECT_EQ(text.error().code, ErrorCode::invalid_argument);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChatTemplateGolden, testing::ValuesIn(template_names()),
                         [](const auto& test) { return test.param; });

TEST(ChatTemplate, PassesOnWhatTheTemplateRaises) {
  EXPECT_EQ(error_of("{{ raise_exception('No system role') }}"), "No system role");
}

TEST(ChatTemplate, NamesTheLineOfAMistake) {
  const auto broken = ChatTemplate::compile("a\nb {% if %}", kTokens);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().field, "chat_template");
  EXPECT_THAT(broken.error().message, HasSubstr("line 2"));
  EXPECT_THAT(error_of("\n\n{{ 1 + 'a' }}"), HasSubstr("line 3"));
}

TEST(ChatTemplate, KnowsTokensAndKwargs) {
  EXPECT_EQ(render("{{ bos_token }}{{ pad_token }}{{ mode }}{{ tools is none }}", "[]", R"({"mode": "fast"})")
                .value(),
            "<s>fastTrue");
}

TEST(ChatTemplate, KeepsTheOrderOfKeys) {
  EXPECT_EQ(render("{{ messages[0] | tojson }}", R"([{"z": 1, "a": {"y": 2, "b": 3}, "m": null}])").value(),
            R"({"z": 1, "a": {"y": 2, "b": 3}, "m": null})");
}

TEST(ChatTemplate, ReadsNumbersAsPythonDoes) {
  EXPECT_EQ(
      render("{{ messages[0].a }}", R"([{"a": [1.1, 1e5, 18446744073709551616, -0.0, 2.675, 1e-5, 5e-324]}])")
          .value(),
      "[1.1, 100000.0, 18446744073709551616, -0.0, 2.675, 1e-05, 5e-324]");
  EXPECT_EQ(render("{{ messages[0] | tojson }}", R"([{"a": 1, "b": 2, "a": 3}])").value(),
            R"({"a": 3, "b": 2})");
}

TEST(ChatTemplate, ReadsReasoningUnderEachName) {
  const std::string_view source =
      "{% for m in messages %}{{ m.reasoning_content }}/{{ m.thinking }};{% endfor %}";
  EXPECT_EQ(
      render(source, R"([{"reasoning": "a"}, {"thinking": "b"}, {"reasoning_content": "c"}, {}])").value(),
      "a/a;b/b;c/c;/;");
}

TEST(ChatTemplate, KwargsReplaceSpecialTokensAndNothingElse) {
  EXPECT_EQ(render("{{ bos_token }}", "[]").value(), "<s>");
  EXPECT_EQ(render("{{ bos_token }}", "[]", R"({"bos_token": "<begin>"})").value(), "<begin>");
  EXPECT_THAT(error_of("x", "[]", R"({"add_generation_prompt": true})"), HasSubstr("is reserved"));
}

TEST(ChatTemplate, DictMethodsWinOverKeysOfTheSameName) {
  EXPECT_EQ(render("{% for k, v in messages[0].items() %}{{ k }}{% endfor %}", R"([{"items": 1, "keys": 2}])")
                .value(),
            "itemskeys");
}

TEST(ChatTemplate, RefusesInputThatIsNotWhatItShouldBe) {
  EXPECT_THAT(error_of("x", "{"), HasSubstr("messages: invalid JSON"));
  EXPECT_THAT(error_of("x", "{}"), HasSubstr("messages: must be an array, not a map"));
  EXPECT_THAT(error_of("x", "[{}, 1]"), HasSubstr("messages[1]: must be an object, not a number"));
  EXPECT_THAT(error_of("x", "[]", "[]"), HasSubstr("chat_template_kwargs: must be an object"));
  EXPECT_THAT(error_of("x", "[]", R"({"messages": []})"),
              HasSubstr("chat_template_kwargs: \"messages\" is reserved"));
  EXPECT_THAT(error_of("x", "\xFF"), HasSubstr("invalid UTF-8"));
  EXPECT_FALSE(ChatTemplate::compile("\xFF", kTokens).has_value());
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  EXPECT_THAT(error_of("x", "[{\"content\":" + deep + "}]"), HasSubstr("messages: invalid JSON"));
}

TEST(ChatTemplate, GenerationTagsOnlyScope) {
  EXPECT_EQ(render("a {%- generation %} b {% endgeneration -%} c").value(), "a b c");
  EXPECT_EQ(render("{% set x = 1 %}{% generation %}{% set x = 2 %}{% endgeneration %}{{ x }}").value(), "1");
}

// Malicious templates must return an error after a short time.
class EvilTemplate : public testing::TestWithParam<std::string> {};

TEST_P(EvilTemplate, IsRefused) {
  const Result<std::string> text = render(GetParam(), R"([{"role": "user", "content": "hi"}])");
  ASSERT_FALSE(text.has_value()) << text->size() << " bytes: " << text->substr(0, 200);
  EXPECT_EQ(text.error().code, ErrorCode::invalid_argument) << text.error().message;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

const std::string kNested = repeated("(", 100'000) + "1" + repeated(")", 100'000);

INSTANTIATE_TEST_SUITE_P(
    DenialOfService, EvilTemplate,
    testing::Values(
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% for i in range(10000) %}{% for j in range(10000) %}{% for k in range(10000) %}{% endfor %}{% "
        "endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}", "{{ " + kNested + " }}",
        "{{ " + repeated("[", 100'000) + " }}", "{{ " + repeated("not ", 100'000) + "1 }}",
        "{{ " + repeated("-", 100'000) + "1 }}", repeated("{% if 1 %}", 100'000), "{{ 'x' * 1000000000 }}",
        "{{ 'x' * 100000000 }}", repeated("{% set x = 'x' * 10000 * 1000 %}", 1000),
        "{{ [1, 2] * 100000000 }}", "{% set n = 100000000 %}{{ 'x' * n }}", "{{ [1] * 1000000000 }}",
        "{{ 2 ** 100000000 }}",
        "{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x "
        "%}{% endfor %}",
        "{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x "
        "%}{% endfor %}",
        "{% set x = 'xxxxxxxxxxxxxxxx' %}" + repeated("{% set x = x ~ x %}", 60),
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ "
        "ns.x | length }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x | replace('a', ns.x) "
        "%}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x.replace('a', ns.x) %}{% "
        "endfor %}",
        "{% set a = 'a' * 10000 %}{% set b = a | replace('a', a) | replace('a', a) %}{{ b | length }}",
        "{{ range(10000) | join('x' * 1000000) | length }}",
        "{{ ('x' * 1000000).join(range(10000) | list) | length }}",
        "{{ ('\n' * 1000000) | indent(100000) | length }}", "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000d' | format(1) }}",
        "{% set x %}{% for i in range(10000) %}{% for j in range(10000) %}" +
            repeated("0123456789abcdef", 1000) + "{% endfor %}{% endfor %}{% endset %}",
        "{% macro m() %}" + repeated("0123456789abcdef", 1000) +
            "{% endmacro %}{% set ns = namespace(x=[]) %}{% for i in range(10000) %}{% set ns.x = ns.x + "
            "[m()] %}{% endfor %}",
        "{% for i in range(10000) %}" + repeated("0123456789abcdef", 1000) + "{% endfor %}",
        "{% for i in range(10000) %}{% for j in range(10000) %}{{ range(10000) | list | sort | length }}{% "
        "endfor %}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(10000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x "
        "}}",
        "{% set ns = namespace(x=[]) %}{% for i in range(10000) %}{% set n = namespace() %}{% set n.x = ns.x "
        "%}{% set "
        "ns.x = n %}{% endfor %}",
        "{% set ns = namespace(x={}) %}{% for i in range(60) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% "
        "endfor %}",
        "{% set ns = namespace(x=()) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ "
        "ns.x == 1 }}",
        "{% set ns = namespace(x='x' * 100000) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% "
        "endfor %}",
        "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ [ns.x] | tojson }}",
        "{% set ns = namespace() %}{% macro m() %}{{ ns.x }}{% endmacro %}{% set ns.x = {'m': [m]} %}",
        "{% set ns = namespace() %}{% set ns.x = namespace(y=1) %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x * 2 %}{% endfor %}",
        "{{ " + repeated("[", 100) + "range(10000) | list" + repeated("]", 100) +
            " | tojson(indent=64) | length }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(10000) %}{% set ns.x = ns.x | zip %}{% endfor %}{{ "
        "ns.x }}",
        "{% extends 'chat_template' %}", "{% include 'chat_template' %}", "{% import 'chat_template' as t %}",
        "{% include '/etc/passwd' %}"));

INSTANTIATE_TEST_SUITE_P(
    Injection, EvilTemplate,
    testing::Values("{{ ''.__class__.__mro__[1].__subclasses__() }}",
                    "{{ cycler.__init__.__globals__.os.popen('id') }}", "{{ joiner.__init__.__globals__ }}",
                    "{{ lipsum.__globals__['os'] }}", "{{ self.__init__.__globals__ }}",
                    "{{ self._TemplateReference__context }}{{ self() }}", "{{ (''|attr('__class__')).x }}",
                    "{{ ''['__class__']['__mro__'] }}", "{{ messages.__class__.__base__ }}",
                    "{{ messages.append({}) }}", "{{ messages[0].update({}) }}",
                    "{{ raise_exception.__globals__.x }}", "{{ strftime_now.__globals__.x }}",
                    "{{ namespace.__init__.__globals__ }}", "{{ dict.__base__.x }}",
                    "{{ range.__class__.x }}", "{{ ''.format.__globals__.x }}",
                    "{{ '{0.__class__.x.y}'.format(1) }}", "{{ get_flashed_messages.x }}",
                    "{{ request.application.x }}", "{{ config.items() }}", "{{ debug() }}"));

TEST(ChatTemplate, BoundsItsSourceAndOutput) {
  const ChatTemplateLimits limits{.source_bytes = 100, .output_bytes = 20};
  EXPECT_THAT(render(std::string(101, 'x'), "[]", "", limits).error().message,
              HasSubstr("101 bytes, the limit is 100"));
  EXPECT_EQ(render(std::string(20, 'x'), "[]", "", limits)->size(), 20u);
  EXPECT_THAT(render(std::string(21, 'x'), "[]", "", limits).error().message,
              HasSubstr("21 bytes, the limit is 20"));
}

// The parser does not limit chains of operators, so the longest template must fit into the stack.
TEST(ChatTemplate, CompilesLongChains) {
  const int bytes = static_cast<int>(ChatTemplateLimits().source_bytes) - 100;
  for (const std::string_view link :
       {"-", "not ", "1+", "1~", "1**", "a.", "1 if 0 else ", "1 and ", "1 in "}) {
    const auto chat =
        ChatTemplate::compile("{{ " + repeated(link, bytes / static_cast<int>(link.size())) + "a }}", {});
    EXPECT_TRUE(chat.has_value() || chat.error().code == ErrorCode::invalid_argument) << link;
  }
  for (const std::string_view link : {".a", "|d", "()", "[0]", " is defined"}) {
    EXPECT_TRUE(
        ChatTemplate::compile("{{ a" + repeated(link, bytes / static_cast<int>(link.size())) + " }}", {})
            .has_value());
  }
  EXPECT_TRUE(ChatTemplate::compile("{% if 0 %}" + repeated("{% elif 0 %}", bytes / 13) + "{% endif %}", {})
                  .has_value());
}

TEST(ChatTemplate, NeedsLittleStackToRender) {
  const ChatTemplate chat =
      ChatTemplate::compile("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {}).value();
  const std::string nested = repeated("[", 100) + repeated("]", 100);
  const ChatTemplate print =
      ChatTemplate::compile("{{ messages }}{{ messages | tojson(indent=1) }}{{ messages == messages[:] }}",
                            {})
          .value();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512u << 10);
  const auto body = [&] {
    EXPECT_THAT(chat.render({.messages = "[]"}).error().message, HasSubstr("recursion limit"));
    EXPECT_TRUE(print.render({.messages = "[{\"content\":" + nested + "}]"}).has_value());
  };
  pthread_t thread;
  const auto start = [](void* run) -> void* { return (*static_cast<decltype(body)*>(run))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, const_cast<void*>(static_cast<const void*>(&body))),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// The limits grow with the input.
TEST(ChatTemplate, RendersLongConversations) {
  std::string messages = "[";
  for (int i = 0; i < 20'000; ++i)
    messages += R"({"role":"user","content":"a"},{"role":"assistant","content":"b"},)";
  messages.back() = ']';
  const auto text = render(
      "{%- for m in messages %}{% if m.role == 'user' and m.content is string %}{{ '<u>' + m.content | trim "
      "+ '</u>' }}"
      "{% elif m.role == 'assistant' %}{{ '<a>' + m['content'] + eos_token }}{% endif %}{% endfor %}",
      messages);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(text->size(), 20'000u * 16);
}

}  // namespace
}  // namespace octavo
