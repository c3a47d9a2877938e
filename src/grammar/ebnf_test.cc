#include "grammar/ebnf.h"

#include <gtest/gtest.h>

#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;

Result<Grammar> ebnf_grammar(std::string_view text) {
  Grammar grammar;
  TRY(grammar.root, add_ebnf(grammar, text, "grammar"));
  return grammar;
}

std::shared_ptr<const CompiledGrammar> compile(
    std::string_view text, std::shared_ptr<const Vocabulary> vocabulary = byte_vocabulary()) {
  return testing::compiled(ebnf_grammar(text), text, std::move(vocabulary));
}

TEST(Ebnf, Notation) {
  const auto g = compile(R"_(# a comment
root ::= "a" item{2,3} | ("x" |
  "y")+ "\n\x41\u00e9" [^a-z\n]? other   # more
item ::= [0-9] | "-"
other ::=
  . )_");
  for (const std::string_view yes : {"a1-", "a123",
                                     "xy\nA\xC3\xA9"
                                     "Zq",
                                     "x\nA\xC3\xA9q", "x\nA\xC3\xA9\xE2\x82\xAC"})
    EXPECT_TRUE(accepts(g, yes)) << yes;
  for (const std::string_view no : {"a1", "a1234", "\nA\xC3\xA9q", "x"}) EXPECT_FALSE(accepts(g, no)) << no;
}

TEST(Ebnf, RecursionOfEveryKind) {
  const auto left = compile(R"_(root ::= root "+" term | term
term ::= term "*" "x" | "x" | "(" root ")")_");
  const auto right = compile(R"_(root ::= "a" root | "b")_");
  const auto nested = compile(R"_(root ::= "(" root ")" | )_");
  const auto hidden = compile(R"_(root ::= opt root "a" | "b"
opt ::= "c"?)_");
  const auto cyclic = compile(R"_(root ::= root | other | "a"
other ::= root)_");
  const auto ambiguous = compile(R"_(root ::= root root | "a" | "")_");
  EXPECT_TRUE(accepts(left, "x+x*x+(x+x)*x+x"));
  EXPECT_FALSE(accepts(left, "x+"));
  EXPECT_FALSE(accepts(left, "x+*x"));
  EXPECT_TRUE(accepts(right, std::string(3000, 'a') + "b"));
  EXPECT_TRUE(accepts(nested, std::string(500, '(') + std::string(500, ')')));
  EXPECT_FALSE(accepts(nested, std::string(500, '(') + std::string(499, ')')));
  EXPECT_TRUE(accepts(hidden, "cbaa"));
  EXPECT_TRUE(accepts(hidden, "ccbaaa"));
  EXPECT_FALSE(accepts(hidden, "cb"));
  EXPECT_TRUE(accepts(cyclic, "a"));
  EXPECT_FALSE(accepts(cyclic, "aa"));
  EXPECT_TRUE(accepts(ambiguous, std::string(60, 'a')));
}

TEST(Ebnf, MaskIsWhatAcceptTakes) {
  const auto vocabulary = byte_vocabulary(
      {"x+", "+x", "(x", "))", "x)", "*x", "xx", "aa", "aaa", "ab", "ba", "bb", "((", "()", ")+(", "x+x*x"},
      {"<|stop|>", "<tool>"});
  std::uint64_t seed = 3;
  const auto next = [&] { return seed = seed * 6364136223846793005ull + 1442695040888963407ull, seed >> 33; };
  for (const std::string_view text :
       {R"_(root ::= root "+" term | term
term ::= term "*" "x" | "x" | "(" root ")")_",
        R"_(root ::= root root | "a" | "b" root "b" | "")_", R"_(root ::= opt root "a" | "b" tail*
opt ::= "a"? "b"?
tail ::= "x" | tail "+" | <|stop|> "a")_",
        R"_(root ::= ("a" | "ab" root){2,70} "b" | <tool>{1,60})_", R"_(root ::= a a a
a ::= "a"* b "a"*
b ::= "b"* a? "b"*)_"}) {
    const auto g = compile(text, vocabulary);
    for (int run = 0; run < 8; ++run) {
      Matcher matcher(g);
      for (int step = 0; step < 40 && !matcher.is_terminated(); ++step) {
        const auto mask = testing::mask_of(matcher, *vocabulary);
        ASSERT_EQ(mask, testing::brute_force_mask(matcher, *vocabulary)) << text << " after " << step;
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
        ASSERT_FALSE(allowed.empty());
        ASSERT_TRUE(matcher.accept(allowed[next() % allowed.size()]));
      }
    }
  }
}

TEST(Ebnf, SpecialTokensAreAtoms) {
  const auto vocabulary = byte_vocabulary({}, {"<|call|>", "<|end|>"});
  const auto only = [&](std::size_t token) {
    std::vector<bool> mask(static_cast<std::size_t>(vocabulary->size()));
    mask[token] = true;
    return mask;
  };
  const auto g = compile("root ::= \"a\" <|call|> \"b\"+ <[258]>", vocabulary);
  Matcher m(g);
  EXPECT_TRUE(testing::feed(m, "a"));
  EXPECT_FALSE(m.accept('<'));
  EXPECT_EQ(m.jump_forward(), "");
  EXPECT_EQ(testing::mask_of(m, *vocabulary), only(257));
  EXPECT_TRUE(m.accept(257));
  EXPECT_EQ(m.jump_forward(), "b");
  EXPECT_TRUE(testing::feed(m, "bb"));
  EXPECT_TRUE(m.accept(258));
  EXPECT_FALSE(m.is_terminated());
  EXPECT_EQ(testing::mask_of(m, *vocabulary), only(256));
  EXPECT_TRUE(m.accept(256));
  EXPECT_TRUE(m.is_terminated());
  EXPECT_FALSE(m.accept('b'));
  m.rollback(1);
  EXPECT_FALSE(m.is_terminated());
  EXPECT_TRUE(m.can_terminate());
  EXPECT_FALSE(CompiledGrammar::compile(*ebnf_grammar("root ::= <|none|>"), vocabulary));
  EXPECT_FALSE(CompiledGrammar::compile(*ebnf_grammar("root ::= <[999]>"), vocabulary));
}

TEST(Ebnf, ATokenAskedForByNumberMayBeText) {
  const auto vocabulary = byte_vocabulary({"ab", "abc"});
  const auto g = compile(R"(root ::= <[256]> "x" | "ab" [yc])", vocabulary);
  Matcher whole(g), bytes(g);
  EXPECT_EQ(testing::mask_of(whole, *vocabulary), testing::brute_force_mask(whole, *vocabulary));
  ASSERT_TRUE(whole.accept(256));
  EXPECT_EQ(testing::mask_of(whole, *vocabulary), testing::brute_force_mask(whole, *vocabulary));
  EXPECT_TRUE(Matcher(whole).accept('x'));
  EXPECT_TRUE(whole.accept('y'));
  ASSERT_TRUE(testing::feed(bytes, "ab"));
  EXPECT_FALSE(bytes.accept('x'));
  EXPECT_TRUE(bytes.accept('c'));
}

TEST(Ebnf, RefusesWithPosition) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "line 1, column 1: the rule 'root' is missing"},
      {"root ::= other", "line 1, column 10: the rule 'other' is not defined; add a line 'other ::= ...'"},
      {"root ::= \"a", "line 1, column 10: the literal has no closing \""},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule 'root' is defined a second time; join"},
      {"root ::= *", "the quantifier '*' has nothing before it to repeat"},
      {"root ::= \"a\"**", "a second quantifier '*'"},
      {"root ::= (\"a\"", "expected ')' or more of the group, found the end of the text"},
      {"root ::= \"a\")", "expected a rule name (letters, digits, '-', '_'), found ')'"},
      {"root ::= [z-a]", "swap them"},
      {"root ::= []", "line 1, column 10: the class is empty"},
      {"root ::= \"\\q\"", "unknown escape \\ before 'q'; known are"},
      {"root ::= \"a\"{3,2}", "the minimum 3 of the repetition exceeds its maximum 2"},
      {"root = \"a\"", "line 1, column 6: expected '::=' after the rule name 'root', found '='"},
      {"root ::= \"a\"{}", "expected a repetition {m}, {m,}, {,n} or {m,n}, found"},
      {"root ::= <[x]>", "'[x]' is not a token number; write <[42]> or <name>"},
      {"root ::= \"\xFF\"", "line 1, column 11: invalid UTF-8"},
      {"# \u00e9\u00e9\nroot ::= \"\u00e9\" &", "line 2, column 14: expected a \"literal\""}};
  for (const auto& [text, part] : cases) {
    const auto grammar = ebnf_grammar(text);
    ASSERT_FALSE(grammar) << text;
    EXPECT_NE(grammar.error().message.find(part), std::string::npos)
        << text << ": " << grammar.error().message;
  }
  const auto empty = CompiledGrammar::compile(*ebnf_grammar("root ::= \"a\" root"), byte_vocabulary());
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("no text"), std::string::npos);
}

}  // namespace
}  // namespace octavo::grammar
