#include "serve/openai/find_parsers.h"

#include <gtest/gtest.h>

#include "grammar/tool_dialect.h"
#include "serve/openai/tool_choice.h"
#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

TEST(FindParsers, ATemplateShowsHowCallsAreWritten) {
  const Tokenizer tokenizer = byte_tokenizer();
  const auto found = [&](std::string_view text) { return find_tool_parser(text, tokenizer, nullptr).name; };
  EXPECT_EQ(found("{{- '\\n<tool_call>\\n{\"name\": \"' }}{{- tool_call.name }}"), "hermes");
  EXPECT_EQ(
      found("'Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name'"),
      "llama3_json");
  EXPECT_EQ(found("{{- \"[TOOL_CALLS] [\" }}"), "mistral");
  EXPECT_EQ(found("{%- for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"), "");
  EXPECT_EQ(found(""), "");
  // These texts are from published templates.
  EXPECT_EQ(found("<{{ dsml_token }}function_calls> {%- set dsml_token = '｜DSML｜' %}"), "deepseek_v32");
  EXPECT_EQ(found("'<｜tool▁calls▁begin｜>' + '\\n' + '```json' + '\\n'"), "deepseek_v3");
  EXPECT_EQ(
      found("'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'+ tool['function']['name'] + '<｜tool▁sep｜>'"),
      "deepseek_v31");
  EXPECT_EQ(
      found("{{ '\\n<tool_call>' + tc.name }}<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>"),
      "glm45");
  EXPECT_EQ(found("{{ '<tool_call>' + tc.name }}<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>"),
            "glm47");
  EXPECT_EQ(found("'<tool_call>\\n<function=' + tool_call.name + '>\\n' '<parameter='"), "qwen3_coder");
  EXPECT_EQ(found("{%- set toolcall_begin_token = '<seed:tool_call>' %}\\n<function="), "seed_oss");
  EXPECT_EQ(found("'<|tool|>' + tools + '<|/tool|>' '<|tool_call|>'"), "phi4_mini_json");
  EXPECT_EQ(found("start_of_role '<|tool_call|>'"), "granite");
}

TEST(FindParsers, ATemplateThatReadsNoToolsGetsThemAsText) {
  const Tokenizer tokenizer = byte_tokenizer();
  const auto found = [&](std::string_view text) {
    const ChatTemplate compiled = ChatTemplate::compile(text, {}).value();
    return find_tool_parser(text, tokenizer, &compiled).name;
  };
  EXPECT_EQ(found("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"), "hermes");
  EXPECT_EQ(found("{{ tools | tojson }}{% for m in messages %}{{ m.content }}{% endfor %}"), "");
}

// If a row named an unknown dialect, the server could not start.
TEST(FindParsers, EveryDialectThatIsFoundExists) {
  const Tokenizer tokenizer = byte_tokenizer();
  for (const grammar::ToolDialect& dialect : grammar::tool_dialects()) {
    const std::string text = std::string(dialect.begin) + std::string(dialect.call.begin) + "f" +
                             std::string(dialect.name_end) + std::string(dialect.parameter.begin) +
                             std::string(dialect.parameter.name_end);
    const FoundParser found = find_tool_parser(text, tokenizer, nullptr);
    if (found.name.empty()) continue;
    EXPECT_TRUE(tool_dialect_of(found.name, tokenizer)) << found.name;
    const bool by_tokens = dialect.name == "mistral_v11";
    EXPECT_EQ(found.name, by_tokens ? "mistral" : dialect.name) << text;
  }
}

TEST(FindParsers, ThoughtsNeedTheirTokens) {
  const Tokenizer plain = byte_tokenizer(), thinks = byte_tokenizer({"<think>", "</think>"});
  const std::string text = "{%- if '</think>' in content %}<think>";
  EXPECT_EQ(find_reasoning_parser(text, plain, "hermes").name, "");
  EXPECT_EQ(find_reasoning_parser(text, thinks, "hermes").name, "qwen3");
  EXPECT_EQ(find_reasoning_parser(text, thinks, "glm45").name, "glm45");
  EXPECT_EQ(find_reasoning_parser(text, thinks, "deepseek_v31").name, "deepseek_v3");
  EXPECT_EQ(find_reasoning_parser(text, thinks, "").name, "deepseek_r1");
  EXPECT_EQ(find_reasoning_parser("no thoughts", thinks, "hermes").name, "");
  EXPECT_EQ(find_reasoning_parser("Here is my thought process: ", plain, "granite").name, "granite");
  const Tokenizer mistral = byte_tokenizer({"[THINK]", "[/THINK]"});
  EXPECT_EQ(find_reasoning_parser("[THINK]{{ m }}[/THINK]", mistral, "mistral").name, "mistral");
}

}  // namespace
}  // namespace octavo::openai
