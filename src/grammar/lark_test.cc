#include "grammar/lark.h"

#include <gtest/gtest.h>

#include "grammar/grammar_cache.h"
#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;

std::shared_ptr<const CompiledGrammar> compile(std::string_view text) {
  return testing::compiled(make_grammar({GrammarKind::ebnf, std::string(text), {}}), text,
                           testing::byte_vocabulary({}, {"<|x|>"}));
}

struct Case {
  std::string_view grammar;
  std::vector<std::string> yes, no;
};

TEST(Lark, Languages) {
  const Case cases[] = {
      {"start: \"a\" b? | c+ -> named\n  // a comment\n  | \"d\"~2..3 # another\nb: \"b\"\nc: (\"x\" | "
       "\"y\")~2\n",
       {"a", "ab", "xy", "xyyy", "dd", "ddd"},
       {"", "b", "x", "xyx", "d", "dddd"}},
      {"start: [\"-\"] \"1\"..\"3\"{1,2}", {"1", "-2", "33"}, {"4", "--1", "123", ""}},
      {"?start.3: _list\n!_list: \"(\" _list* \")\"\n", {"()", "(()())"}, {"", "(", "())"}},
      {"s: s \"+\" N | N\nN.-1: /[0-9]+/", {"1", "12+3+4"}, {"+1", "1+"}},  // left recursion, no `start`
      {"start: \"select\"i /from/i /[^s]/i /./s",
       {"SELECTfromx\n", "selectFROM1y"},
       {"selectfromS\n", "from"}},
      {"start: 'a\\n\\x41\\u00e9\\\"\\\\'", {"a\nA\xC3\xA9\"\\"}, {"a"}},
      {"start: A B\nA: \"a\" B?\nB: C | \"b\"\nC: \"c\"+", {"ab", "acccb", "abc"}, {"a", "aba"}},
      {"start: /a\\/b/ (\"x\"\n  | \"y\"\n)", {"a/bx", "a/by"}, {"a/b"}},
      {"start: %json {\"enum\": [\"}\", 2]} \";\"", {"\"}\";", "2;"}, {"2", "3;"}},
      {"start: a-b \"x\"\na-b: \"y\" ->z\n", {"yx"}, {"x"}},
      {"start: \"::=\"\n", {"::="}, {":"}},
  };
  for (const Case& c : cases) {
    const auto grammar = compile(c.grammar);
    ASSERT_TRUE(grammar);
    for (const std::string& text : c.yes) EXPECT_TRUE(accepts(grammar, text)) << c.grammar << " on " << text;
    for (const std::string& text : c.no) EXPECT_FALSE(accepts(grammar, text)) << c.grammar << " on " << text;
  }
}

TEST(Lark, IgnoredTerminalsStandBetweenTerminalsOnly) {
  const auto g = compile(
      "%import common (INT, CNAME)\n%import common.WS -> SPACE\n%ignore SPACE\n%ignore /;[^\\n]*/\n"
      "start: pair*\npair: CNAME \"=\" INT\n");
  for (const std::string_view yes : {"", "a=1", " a = 12\nb=2 ; tail", ";x\na=1"})
    EXPECT_TRUE(accepts(g, yes)) << yes;
  for (const std::string_view no : {"a=", "1=a", "a=;b"}) EXPECT_FALSE(accepts(g, no)) << no;
  const auto call = compile("start: KEY\n%ignore \" \"\nKEY: \"a\" \"b\"");
  EXPECT_TRUE(accepts(call, " ab "));
  EXPECT_FALSE(accepts(call, "a b"));
}

TEST(Lark, CommonTerminals) {
  const std::vector<std::tuple<std::string, std::vector<std::string>, std::vector<std::string>>> cases = {
      {"SIGNED_NUMBER", {"1", "-1.5e+3", ".5", "+2."}, {"", "e1", "1.2.3", "-"}},
      {"FLOAT", {"1.", ".5", "1e9", "1.5E-2"}, {"1", "."}},
      {"SIGNED_FLOAT", {"-1."}, {"-1"}},
      {"ESCAPED_STRING", {R"("")", R"("a\"b\\")"}, {R"(")", R"("a"b")", "\"\n\""}},
      {"CNAME", {"_a1"}, {"1a", ""}},
      {"C_COMMENT", {"/**/", "/* * / **/"}, {"/*/", "/**/ */"}},
      {"NEWLINE", {"\n", "\r\n\n"}, {"\r"}},
      {"HEXDIGIT", {"f", "A"}, {"g", "ff"}},
      {"SQL_COMMENT", {"--x"}, {"-", "--\n"}}};
  for (const auto& [name, yes, no] : cases) {
    const auto g = compile("%import common." + name + "\nstart: " + name);
    for (const std::string& text : yes) EXPECT_TRUE(accepts(g, text)) << name << " on " << text;
    for (const std::string& text : no) EXPECT_FALSE(accepts(g, text)) << name << " on " << text;
  }
}

TEST(Lark, SpecialTokens) {
  const auto g = compile("start: \"a\" <|x|>");
  Matcher matcher(g);
  EXPECT_TRUE(matcher.accept('a'));
  EXPECT_TRUE(matcher.accept(257));
  EXPECT_TRUE(matcher.can_terminate());
}

TEST(Lark, RefusesWithItsPlace) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"start: a\n", "line 1, column 8: 'a' is not defined; add a line 'a: ...'"},
      {"start: \"a\"\nstart: \"b\"",
       "line 2, column 1: 'start' is defined a second time; join its definitions"},
      {"start: A\nA: \"(\" B\nB: A \")\"",
       "line 2, column 1: the terminal 'A' contains itself; only rules (lower case) may be recursive"},
      {"start: A\nA: b\nb: \"x\"",
       "line 2, column 4: a terminal cannot use the rule 'b'; make it a terminal"},
      {"start: (\"a\"", "expected ')' or more of the group, found the end of the text"},
      {"start: \"a\"~3..2", "the minimum 3 of the repetition exceeds its maximum 2"},
      {"start: \"a\"~9999999999", "a repetition count exceeds the limit of"},
      {"start: *", "line 1, column 8: the quantifier '*' has nothing before it to repeat"},
      {"start: \"a\"+*", "a second quantifier '*'"},
      {"start: \"a", "line 1, column 8: the literal has no closing \""},
      {"start: /a", "line 1, column 8: the regular expression has no closing '/'"},
      {"start: /(?=a)/", "lookaround is not supported"},
      {"start: /a/x", "the flag 'x'"},
      {"start: /\xC3\xA9/i", "the flag i supports ASCII characters only"},
      {"start: \"z\"..\"a\"", "both ends of a range must be one character"},
      {"start: t{\"a\"}\nt{x}: x", "templates are not supported"},
      {"start[lazy]: \"a\"", "attributes of rules such as [lazy] are not supported"},
      {"%import python.NAME\nstart: NAME", "only terminals of 'common' can be imported"},
      {"%import common.NAME\nstart: NAME", "line 1, column 16: 'common' has no terminal 'NAME'"},
      {"%declare A\nstart: A", "line 1, column 1: the directive '%declare' is not supported; supported are"},
      {"%ignore a\nstart: \"a\"\na: \"b\"", "a terminal cannot use the rule 'a'"},
      {"start: %json {\"type\": \"nothing\"}", "Lark, line 1, column 8: "},
      {"start: %json {\"", "the JSON Schema after %json has no closing '}'"},
      {"start \"a\"", "expected ':' after the name 'start', found '\"'"},
      {"%ignore \" \"", "the grammar has no rule; add a line 'start: ...'"},
      {"A: \"a\"", "the grammar has no rule; add a line 'start: ...'"},
      {"start: \xFF", "invalid UTF-8"},
  };
  for (const auto& [text, message] : cases) {
    const auto grammar = make_grammar({GrammarKind::ebnf, std::string(text), {}});
    ASSERT_FALSE(grammar) << text;
    EXPECT_NE(grammar.error().message.find(message), std::string::npos)
        << text << ": " << grammar.error().message;
  }
  // A rule that never ends matches no text.
  auto endless = ebnf_or_lark_grammar("start: \"a\" start");
  ASSERT_TRUE(endless);
  EXPECT_FALSE(CompiledGrammar::compile(*std::move(endless), testing::byte_vocabulary()));
}

TEST(Lark, IsToldFromEbnf) {
  for (const std::string_view lark :
       {"start: \"a\"", "// c\n\nx: y", "%ignore WS", "?a: \"::=\"", "a", "N: /::=/"})
    EXPECT_TRUE(is_lark(lark)) << lark;
  for (const std::string_view ebnf : {"root ::= \"a\"", "# c: d\n a-b ::= x", "", "root\n::= \"x\""})
    EXPECT_FALSE(is_lark(ebnf)) << ebnf;
}

}  // namespace
}  // namespace octavo::grammar
