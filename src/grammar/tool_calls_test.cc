#include "grammar/tool_calls.h"

#include <gtest/gtest.h>

#include "grammar/grammar_cache.h"
#include "grammar/testing.h"

namespace octavo::grammar {
namespace {

const std::vector<Tool>& tools() {
  static const std::vector<Tool> all = {
      {"get_weather",
       R"({"type":"object","properties":{"city":{"type":"string"},"unit":{"$ref":"#/$defs/unit"},"days":{"type":"integer"}},
           "required":["city"],"$defs":{"unit":{"enum":["C","F"]}}})",
       true},
      {"stop", "", false}};
  return all;
}

// Checks outputs of a dialect. Special tokens are written as text.
class Calls {
 public:
  Calls(std::string_view dialect, ToolChoice choice, bool parallel, std::vector<std::string> special = {})
      : vocabulary_(testing::byte_vocabulary({}, special)) {
    const ToolDialect* found = tool_dialect(dialect);
    EXPECT_TRUE(found) << dialect;
    const auto tag = tool_call_tag(tools(), choice, parallel, *found, special);
    EXPECT_TRUE(tag) << tag.error().message;
    JsonOptions options;
    auto grammar = make_grammar({GrammarKind::structural_tag, *tag, options});
    EXPECT_TRUE(grammar) << grammar.error().message << *tag;
    auto compiled = CompiledGrammar::compile(*std::move(grammar), vocabulary_);
    EXPECT_TRUE(compiled) << compiled.error().message << *tag;
    grammar_ = *compiled;
  }
  bool takes(std::string_view text) const {
    Matcher matcher(grammar_);
    while (!text.empty()) {
      TokenId token = static_cast<std::uint8_t>(text[0]);
      for (const TokenId id : vocabulary_->special())
        if (text.starts_with(vocabulary_->bytes(id))) token = id;
      text.remove_prefix(vocabulary_->bytes(token).size());
      if (!matcher.accept(token)) return false;
    }
    return matcher.can_terminate();
  }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const CompiledGrammar> grammar_;
};

TEST(ToolCalls, RequiredInEveryDialect) {
  struct Form {
    std::string dialect, one, two, wrong;
    std::vector<std::string> special;
  };
  const Form forms[] = {
      {"hermes",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\", \"unit\": "
       "\"C\"}}\n</tool_call>",
       "\n<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"unit\": \"C\"}}\n</tool_call>",
       {"<tool_call>", "</tool_call>"}},
      {"llama3_json",
       "{\"name\": \"get_weather\", \"parameters\": {\"city\":\"x\"}}",
       "; {\"name\": \"stop\", \"parameters\": {\"a\": 1}}",
       "{\"name\": \"other\", \"parameters\": {}}",
       {}},
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\":\"x\"}}]",
       "",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\":1}}]",
       {"[TOOL_CALLS]"}},
      {"mistral_v11",
       "[TOOL_CALLS]get_weather[ARGS]{\"city\":\"x\"}",
       "[TOOL_CALLS]stop[ARGS]{}",
       "[TOOL_CALLS]weather[ARGS]{}",
       {"[TOOL_CALLS]", "[ARGS]"}},
      {"deepseek_v3",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "",
       "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>",
       {"<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"}},
      {"deepseek_v31",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>stop<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\":\"\",\"days\":3}<｜tool▁call▁end｜><"
       "｜tool▁calls▁end｜>",
       "",
       "stop",
       {}},
      {"qwen3_coder",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nNew \"York\" "
       "<x>\n</parameter>\n<parameter=unit>\nF\n"
       "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
       "\n<tool_call>\n<function=stop>\n</function>\n</tool_call>",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=unit>\nK\n</"
       "parameter>\n"
       "</function>\n</tool_call>",
       {"<tool_call>", "</tool_call>"}},
      {"longcat",
       "<longcat_tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</longcat_tool_call>",
       "\n<longcat_tool_call>\n{\"name\": \"stop\", \"arguments\": {\"a\":1}}\n</longcat_tool_call>",
       "<longcat_tool_call>\n{\"name\": \"stop\", \"arguments\": 1}\n</longcat_tool_call>",
       {"<longcat_tool_call>"}},
      {"internlm",
       "<|action_start|><|plugin|>\n{\"name\": \"stop\", \"parameters\": {}}<|action_end|>",
       "",
       "<|action_start|><|plugin|>\n{\"name\": \"stop\"}<|action_end|>",
       {"<|action_start|>", "<|action_end|>", "<|plugin|>"}},
      {"nemotron_json",
       "<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": {\"city\":\"x\"}}]</TOOLCALL>",
       "",
       "<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": {}}]</TOOLCALL>",
       {}},
      {"granite",
       "<|tool_call|>[{\"name\": \"stop\", \"arguments\": {}}]",
       "",
       "<|tool_call|>[]",
       {"<|tool_call|>"}},
      {"apertus",
       "<|tools_prefix|>[{\"get_weather\": {\"city\": \"x\"}}]<|tools_suffix|>",
       "",
       "<|tools_prefix|>[{\"weather\": {}}]<|tools_suffix|>",
       {"<|tools_prefix|>", "<|tools_suffix|>"}},
      {"cohere_command3",
       "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": "
       "{\"city\": "
       "\"x\"}}]<|END_ACTION|>",
       "",
       "<|START_ACTION|>[{\"tool_call_id\": \"a\", \"tool_name\": \"stop\", \"parameters\": "
       "{}}]<|END_ACTION|>",
       {"<|START_ACTION|>", "<|END_ACTION|>"}},
      {"minicpm5",
       "<function name=\"get_weather\"><param name=\"city\">x</param><param "
       "name=\"days\">3</param></function>",
       "\n<function name=\"stop\"></function>",
       "<function name=\"get_weather\"></function>",
       {}},
      {"jamba",
       "<tool_calls>[{\"name\": \"stop\", \"arguments\": {}}]</tool_calls>",
       "",
       "<tool_calls></tool_calls>",
       {"<tool_calls>", "</tool_calls>"}},
      {"phi4_mini_json",
       "functools[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}]",
       "",
       "functools[{\"name\": \"get_weather\", \"arguments\": {}}]",
       {}},
      {"xlam", "[{\"name\": \"stop\", \"arguments\": {}}]", "", "[]", {}},
      {"seed_oss",
       "<seed:tool_call>\n<function=get_weather>\n<parameter=city>New\nYork</parameter>\n</function>\n"
       "</seed:tool_call>",
       "\n<seed:tool_call>\n<function=stop>\n</function>\n</seed:tool_call>",
       "<seed:tool_call>\n<function=get_weather>\n</function>\n</seed:tool_call>",
       {"<seed:tool_call>"}},
      {"minimax_m2",
       "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x</parameter>\n"
       "</invoke>\n</minimax:tool_call>",
       "",
       "<minimax:tool_call>\n</minimax:tool_call>",
       {}},
      {"glm45",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n<arg_key>days</arg_key>\n"
       "<arg_value>3</arg_value>\n</tool_call>",
       "\n<tool_call>stop\n</tool_call>",
       "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
       {"<tool_call>", "</tool_call>", "<arg_key>"}},
      {"glm47",
       "<tool_call>get_weather<arg_key>city</arg_key><arg_value>x</arg_value></tool_call>",
       "<tool_call>stop</tool_call>",
       "<tool_call>get_weather</tool_call>",
       {"<tool_call>", "</tool_call>", "<arg_key>"}},
      {"granite-20b-fc",
       "<function_call> {\"name\": \"stop\", \"arguments\": {}}",
       "\n<function_call> {\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}",
       "<function_call> {\"name\": \"get_weather\", \"arguments\": {}}",
       {"<function_call>"}},
      {"gigachat3",
       "function call<|role_sep|>\n{\"name\": \"stop\", \"arguments\": {}}",
       "",
       "function call<|role_sep|>\n{\"name\": \"start\", \"arguments\": {}}",
       {"<|role_sep|>"}},
      {"kimi_k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:12<|tool_call_argument_begin|>"
       "{\"city\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>",
       "",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.stop<|tool_call_argument_begin|>{}"
       "<|tool_call_end|><|tool_calls_section_end|>",
       {"<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
        "<|tool_call_end|>", "<|tool_calls_section_end|>"}},
      {"deepseek_v32",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
       "string=\"true\">x</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3"
       "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
       "string=\"false\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       {"｜DSML｜"}},
      {"step3",
       "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
       "name=\"get_weather\">"
       "<steptml:parameter name=\"city\">x</steptml:parameter></steptml:invoke><｜tool_call_end｜>"
       "<｜tool_calls_end｜>",
       "",
       "<｜tool_calls_begin｜><｜tool_calls_end｜>",
       {"<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "<｜tool_sep｜>"}},
      {"deepseek_v4",
       "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
       "string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
       "",
       "<｜DSML｜tool_calls>\n<｜DSML｜invoke "
       "name=\"get_weather\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
       {"｜DSML｜"}},
      {"deepseek_v41",
       "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"stop\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
       "",
       "<｜DSML｜calls>\n<｜DSML｜invoke name=\"stop\">\n</｜DSML｜invoke>\n</｜DSML｜calls>",
       {"｜DSML｜"}},
      {"dots",
       "<dots_function_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x</parameter>\n"
       "</invoke>\n</dots_function_call>",
       "",
       "<dots_function_call>\n</dots_function_call>",
       {"<dots_function_call>", "</dots_function_call>"}},
      {"hy_v3",
       "<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n"
       "</tool_call>\n</tool_calls>",
       "",
       "<tool_calls>\n<tool_call>get_weather<tool_sep>\n</tool_call>\n</tool_calls>",
       {"<tool_calls>", "<tool_call>", "<tool_sep>", "<arg_key>"}},
      {"plamo3",
       "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>"
       "stop<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json"
       "<|plamo:msg|>{}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
       "<|plamo:end_tool_requests:plamo|>",
       "",
       "<|plamo:begin_tool_requests:plamo|><|plamo:end_tool_requests:plamo|>",
       {"<|plamo:constrain|>", "<|plamo:msg|>"}}};
  const auto enforced = [](const ToolDialect& dialect) {  // harmony_test.cc tests gpt-oss
    using enum ToolDialect::Form;
    return dialect.form == object || dialect.form == named || dialect.form == parameters;
  };
  ASSERT_EQ(std::ssize(forms), std::ranges::count_if(tool_dialects(), enforced));
  for (const Form& form : forms)
    // The same texts must match whether the marks are special tokens or plain text.
    for (const auto& special : {std::vector<std::string>(), form.special}) {
      const Calls many(form.dialect, ToolChoice::required, true, special),
          once(form.dialect, ToolChoice::required, false, special);
      const bool list = form.dialect == "deepseek_v31";
      EXPECT_TRUE(many.takes(form.one)) << form.dialect;
      EXPECT_EQ(once.takes(form.one), !list) << form.dialect;
      if (!form.two.empty()) {
        EXPECT_TRUE(many.takes(form.one + form.two)) << form.dialect;
        EXPECT_FALSE(once.takes(form.one + form.two)) << form.dialect;
      }
      for (const std::string& no : {std::string(), std::string("text"), form.wrong, form.one + "x"}) {
        EXPECT_FALSE(many.takes(no)) << form.dialect << ": " << no;
        EXPECT_FALSE(once.takes(no)) << form.dialect << ": " << no;
      }
    }
}

TEST(ToolCalls, StrictToolsInFreeText) {
  for (const auto& special :
       {std::vector<std::string>(), std::vector<std::string>{"<tool_call>", "</tool_call>"}}) {
    const std::string good =
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"x\"}}\n</tool_call>";
    const std::string loose = "<tool_call>\n{\"name\": \"stop\", \"arguments\": {\"any\":[1]}}\n</tool_call>";
    const Calls many("hermes", ToolChoice::free, true, special),
        once("hermes", ToolChoice::free, false, special);
    for (const std::string& yes : {std::string(), std::string("hello <tool"), "a " + good, loose}) {
      EXPECT_TRUE(many.takes(yes)) << yes;
      EXPECT_TRUE(once.takes(yes)) << yes;
    }
    EXPECT_TRUE(many.takes(good + " and " + loose + " end"));
    EXPECT_FALSE(once.takes(good + loose));
    for (const std::string_view no :
         {"<tool_call>\n", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>",
          "<tool_call>\n{\"name\": \"nothing\""})
      EXPECT_FALSE(many.takes(no)) << no;
  }
  const Calls xml("qwen3_coder", ToolChoice::free, true);
  EXPECT_TRUE(xml.takes("x<tool_call>\n<function=stop>\nanything\n</function>\n</tool_call>"));
  EXPECT_FALSE(xml.takes("x<tool_call>\n<function=get_weather>\nanything\n</function>\n</tool_call>"));
  const Calls mistral("mistral", ToolChoice::free, true, {"[TOOL_CALLS]"});
  EXPECT_TRUE(mistral.takes("text"));
  EXPECT_TRUE(mistral.takes("text[TOOL_CALLS][{\"name\": \"stop\", \"arguments\": {}}]"));
  EXPECT_FALSE(mistral.takes("[TOOL_CALLS][]"));
}

TEST(ToolCalls, ListsAndArguments) {
  const auto takes = [](const Result<std::string>& schema, std::string_view text) {
    EXPECT_TRUE(schema) << schema.error().message;
    auto grammar = make_grammar({GrammarKind::json_schema, *schema, {}});
    EXPECT_TRUE(grammar) << grammar.error().message;
    return testing::accepts(*CompiledGrammar::compile(*std::move(grammar), testing::byte_vocabulary()), text);
  };
  const std::string one = R"({"name": "get_weather", "parameters": {"city": "x", "unit": "F"}})";
  EXPECT_TRUE(takes(tool_list_schema(tools(), true), "[" + one + R"(,{"name":"stop","parameters":{}}])"));
  EXPECT_TRUE(takes(tool_list_schema(tools(), false), "[" + one + "]"));
  EXPECT_FALSE(takes(tool_list_schema(tools(), false), "[" + one + "," + one + "]"));
  EXPECT_FALSE(takes(tool_list_schema(tools(), true), "[]"));
  EXPECT_FALSE(takes(tool_list_schema(tools(), true), R"([{"name":"stop","parameters":1}])"));
  EXPECT_TRUE(takes(tool_arguments_schema(tools()[0]), R"({"city":"x","unit":"C"})"));
  EXPECT_FALSE(takes(tool_arguments_schema(tools()[0]), R"({"city":"x","unit":"K"})"));
  for (const char* schema :
       {"", "{}", "true", R"({"new_string":{"type":"string"}})", R"({"properties":{}})"}) {
    const Tool untyped{.name = "f", .parameters = schema};
    EXPECT_TRUE(takes(tool_arguments_schema(untyped), "{}")) << schema;
    EXPECT_FALSE(takes(tool_arguments_schema(untyped), "4")) << schema;
    EXPECT_FALSE(takes(tool_list_schema(std::vector{untyped}, true), R"([{"name":"f","parameters":4}])"))
        << schema;
  }
}

TEST(ToolCalls, Refuses) {
  const auto error = [&](std::vector<Tool> list, std::string_view dialect) {
    const auto tag = tool_call_tag(list, ToolChoice::required, true, *tool_dialect(dialect), {});
    return tag ? "" : tag.error().message;
  };
  EXPECT_NE(error({}, "hermes").find("empty"), std::string::npos);
  EXPECT_NE(error({{"a\"b", "", false}}, "hermes").find("tools[0]: the name"), std::string::npos);
  EXPECT_NE(error({{"a", "[]", false}}, "hermes").find("must be a JSON Schema object"), std::string::npos);
  EXPECT_NE(error({{"a", "false", false}}, "hermes").find("must be a JSON Schema object"), std::string::npos);
  EXPECT_EQ(error({{"a", "true", false}}, "hermes"), "");  // `true` permits any object
  EXPECT_NE(error({{"a", R"({"type":"array"})", false}}, "hermes").find("must be of type object"),
            std::string::npos);
  EXPECT_NE(error({{"a", R"({"properties":{"p":{"type":"string","pattern":"a"}}})", false}}, "qwen3_coder")
                .find("the parameter 'p' is a string with 'pattern'"),
            std::string::npos);
  EXPECT_NE(error({{"a", R"({"properties":{"p":{"$ref":"#"}}})", false}}, "qwen3_coder").find("$ref"),
            std::string::npos);
  EXPECT_NE(error({{"a", R"({"minProperties":1})", false}}, "qwen3_coder").find("'minProperties'"),
            std::string::npos);
  EXPECT_NE(error({{"a", R"({"required":["x"]})", false}}, "qwen3_coder").find("'required'"),
            std::string::npos);
  const std::vector<Tool> clash = {{"a", R"({"$defs":{"d":{"type":"null"}}})", false},
                                   {"b", R"({"$defs":{"d":{"type":"string"}}})", false}};
  EXPECT_FALSE(tool_list_schema(clash, true));
  EXPECT_NE(error({{"a", "", false}}, "pythonic").find("cannot be enforced"), std::string::npos);
  const std::vector<Tool> one = {{"a", "", true}};
  EXPECT_FALSE(tool_call_tag(one, ToolChoice::free, true, *tool_dialect("xlam"), {}));
  EXPECT_FALSE(tool_dialect("nothing"));
}

TEST(ToolCalls, DialectsByTheNamesOfParsers) {
  EXPECT_EQ(tool_dialect("qwen3_xml"), tool_dialect("qwen3_coder"));
  for (const std::string_view name : tool_dialect_names()) EXPECT_TRUE(tool_dialect(name)) << name;
  EXPECT_EQ(
      text_parameters(R"({"properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"$ref":"#/$defs/u"},
                                "d":{"enum":["x",1]},"e":{"const":"y"}},"$defs":{"u":{"enum":["C","F"]}}})"),
      (std::vector<std::string>{"a", "c", "e"}));
  EXPECT_TRUE(text_parameters("[").empty());
}

}  // namespace
}  // namespace octavo::grammar
