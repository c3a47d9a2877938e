#include "grammar/structural_tag.h"

#include <gtest/gtest.h>

#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;

std::shared_ptr<const CompiledGrammar> compile(std::string_view spec) {
  return testing::compiled(structural_tag_grammar(spec), spec);
}

TEST(StructuralTag, Legacy) {
  const auto g = compile(R"({"type":"structural_tag","triggers":["<fn="],"structures":[
    {"begin":"<fn=a>","schema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},"end":"</fn>"},
    {"begin":"<fn=b>","schema":{"type":"null"},"end":"</fn>"}]})");
  for (const std::string_view yes :
       {"", "free < text <fn", R"(hi <fn=a>{"x":1}</fn> and <<fn=b>null</fn>)", "<f<fn=b>null</fn>"})
    EXPECT_TRUE(accepts(g, yes)) << yes;
  for (const std::string_view no :
       {"<fn=", "<fn=c>null</fn>", "<fn=a>null</fn>", "<fn=b>null", "x<fn=b>null</fn><fn=b>1</fn>"})
    EXPECT_FALSE(accepts(g, no)) << no;
}

TEST(StructuralTag, Formats) {
  const auto g = compile(R"({"type":"structural_tag","format":{"type":"sequence","elements":[
    {"type":"tag","begin":"<think>","content":{"type":"any_text"},"end":"</think>"},
    {"type":"or","elements":[{"type":"const_string","value":"no"},
      {"type":"triggered_tags","triggers":["["],"at_least_one":true,"stop_after_first":true,
       "tags":[{"begin":"[1","content":{"type":"regex","pattern":"\\d*"},"end":"]"}]}]}]}})");
  for (const std::string_view yes : {"<think>a < b</think>no", "<think></think>text [123]"})
    EXPECT_TRUE(accepts(g, yes)) << yes;
  for (const std::string_view no : {"<think>a</think>", "<think></think>[1]x", "<think>a",
                                    "<think></think>text", "no", "<think>a</think>x</think>no"})
    EXPECT_FALSE(accepts(g, no)) << no;
  const auto list = compile(
      R"({"type":"structural_tag","format":{"type":"tags_with_separator","separator":";","at_least_one":true,
    "tags":[{"begin":"a","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"."},
            {"begin":"b","content":{"type":"grammar","grammar":"root ::= \"x\"+"},"end":"."}]}})");
  EXPECT_TRUE(accepts(list, "a1.;bxx.;a-5."));
  EXPECT_FALSE(accepts(list, ""));
  EXPECT_FALSE(accepts(list, "a1.;"));
  const auto twice = compile(
      R"({"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<"],"at_least_one":true,
    "tags":[{"begin":"<a>","content":{"type":"const_string","value":"1"},"end":";"}]}})");
  EXPECT_TRUE(accepts(twice, "x<a>1;y<a>1;z"));
  EXPECT_FALSE(accepts(twice, "x"));
}

TEST(StructuralTag, RefusesWithPointerAndRemedy) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"{}", "structural tag: the member 'structures' is missing; add it"},
      {R"({"structures":[],"triggers":[]})", "structural tag: 'triggers' is empty; add a string"},
      {R"({"structures":[{"begin":"<a>","schema":{},"end":"x"}],"triggers":["<b"]})",
       "structural tag: no tag begins with the trigger '<b'; add one, or remove the trigger"},
      {R"({"structures":[{"begin":"<a>","end":"x"}],"triggers":["<a"]})",
       "at /structures/0: the member 'schema' is missing"},
      {R"({"format":{"type":"unheard"}})",
       "at /format: the type 'unheard' is not supported; supported are any_text, "},
      {R"({"format":{"type":"regex","pattern":"a","flags":"i"}})",
       "at /format: the type 'regex' has no member 'flags'; remove it (members: type, pattern)"},
      {R"({"format":{"type":"tag","begin":"a","end":"b"}})", "at /format: the member 'content' is missing"},
      {R"({"format":{"type":"const_string","value":1}})", "at /format: 'value' must be a string"},
      {R"({"format":{"type":"sequence","elements":[]}})", "at /format: 'elements' is empty; add a format"},
      {R"({"format":{"type":"sequence","elements":[{"type":"regex","pattern":"a("}]}})",
       "regex, line 1, column 2: the group has no closing ')'"},
      {R"({"format":{"type":"json_schema","json_schema":{"type":1}}})", "'type' at #/type: must be one of"},
      {"[]", "structural tag: must be an object with the member 'structures'"},
      {"{", "JSON, line 1, column 2: expected a name in double quotes, found the end of the text"}};
  for (const auto& [spec, part] : cases) {
    const auto grammar = structural_tag_grammar(spec);
    ASSERT_FALSE(grammar) << spec;
    EXPECT_NE(grammar.error().message.find(part), std::string::npos)
        << spec << ": " << grammar.error().message;
  }
}

}  // namespace
}  // namespace octavo::grammar
