#include "grammar/harmony.h"

#include <gtest/gtest.h>

#include "grammar/grammar_cache.h"
#include "grammar/matcher.h"
#include "grammar/testing.h"
#include "grammar/tool_calls.h"

namespace octavo::grammar {
namespace {

const std::vector<std::string> kMarks = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                                         "<|end|>"};

// text: an output in which special tokens are written as text. Returns whether it is a complete text of the
// grammar.
bool takes(const GrammarSource& source, std::string_view text) {
  const auto vocabulary = testing::byte_vocabulary({}, kMarks);
  auto grammar = make_grammar(source);
  EXPECT_TRUE(grammar) << grammar.error().message << source.text;
  const auto compiled = CompiledGrammar::compile(*std::move(grammar), vocabulary);
  EXPECT_TRUE(compiled) << compiled.error().message;
  Matcher matcher(*compiled);
  while (!text.empty()) {
    TokenId token = static_cast<std::uint8_t>(text[0]);
    for (const TokenId id : vocabulary->special())
      if (text.starts_with(vocabulary->bytes(id))) token = id;
    text.remove_prefix(vocabulary->bytes(token).size());
    if (!matcher.accept(token)) return false;
  }
  return matcher.can_terminate();
}

constexpr std::string_view kThought =
    "<|channel|>analysis<|message|>Is it {\"a\"? final<|end|><|start|>assistant";
constexpr std::string_view kPreamble = "<|channel|>commentary<|message|>Wait.<|end|><|start|>assistant";
constexpr std::string_view kFinal = "<|channel|>final<|message|>";

std::string after_thought(std::string_view text) { return std::string(kThought) + std::string(text); }

TEST(Harmony, OnlyTheFinalMessageIsBound) {
  struct Case {
    GrammarSource source;
    std::string good, bad;
  };
  const Case cases[] = {{{GrammarKind::json_schema,
                          R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})"},
                         R"({"a": 1})",
                         R"({"a": "x"})"},
                        {{GrammarKind::json_object}, "{}", "[]"},
                        {{GrammarKind::regex, R"(\d+"?)"}, "12\"", "x"},
                        {{GrammarKind::ebnf, "root ::= \"y\" | \"n\""}, "y", "yn"},
                        {{GrammarKind::choice, R"(["red", "gr\"een"])"}, "gr\"een", "blue"},
                        {{GrammarKind::structural_tag,
                          R"({"type":"structural_tag","format":{"type":"const_string","value":"hi"}})"},
                         "hi",
                         "ho"}};
  for (const Case& c : cases) {
    const auto bound = in_final_message(c.source);
    ASSERT_TRUE(bound) << bound.error().message;
    for (const bool thinks : {false, true}) {
      const std::string before = (thinks ? std::string(kThought) : "") + std::string(kFinal);
      EXPECT_TRUE(takes(*bound, before + c.good)) << c.good;
      EXPECT_FALSE(takes(*bound, before + c.bad)) << c.bad;
      EXPECT_FALSE(takes(*bound, before)) << c.good;
    }
    EXPECT_FALSE(takes(*bound, kThought));
    EXPECT_FALSE(takes(*bound, std::string(kPreamble) + std::string(kFinal) + c.good))
        << "it would stand before it";
    EXPECT_FALSE(takes(*bound, c.good));
  }
  const auto legacy = in_final_message({GrammarKind::structural_tag, R"({"structures":[],"triggers":[]})"});
  ASSERT_FALSE(legacy);
}

TEST(Harmony, CallsOfStrictTools) {
  const std::vector<Tool> tools = {
      {"add", R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})", true},
      {"stop", "", false}};
  const auto tag = [&](ToolChoice choice) {
    return GrammarSource{GrammarKind::structural_tag,
                         tool_call_tag(tools, choice, true, *tool_dialect("openai"), kMarks).value()};
  };
  const auto call = [](std::string_view name, std::string_view arguments) {
    return "<|channel|>commentary to=functions." + std::string(name) + " <|constrain|>json<|message|>" +
           std::string(arguments);
  };
  const GrammarSource free = tag(ToolChoice::free), required = tag(ToolChoice::required);
  for (const GrammarSource& source : {free, required}) {
    EXPECT_TRUE(takes(source, call("add", R"({"a": 1})")));
    EXPECT_TRUE(takes(source, after_thought(call("add", R"({"a": 1})"))));
    EXPECT_FALSE(takes(source, after_thought(call("add", R"({"a": "x"})"))));
    EXPECT_FALSE(takes(source, call("other", "{}")));
  }
  EXPECT_TRUE(takes(free, std::string(kPreamble) + call("add", R"({"a": 1})")));
  EXPECT_TRUE(takes(free, call("stop", R"({"any": []})")));
  EXPECT_TRUE(takes(free, after_thought(std::string(kFinal) + "What you like.")));
  EXPECT_FALSE(takes(required, after_thought(std::string(kFinal) + "What you like.")));
}

}  // namespace
}  // namespace octavo::grammar
