#include "grammar/regex.h"

#include <gtest/gtest.h>
#include <random>

#include "grammar/test_compile.h"

namespace octavo::grammar {
namespace {

using testing::accepts;
using testing::byte_vocabulary;

std::shared_ptr<const CompiledGrammar> compile(std::string_view pattern) {
  return testing::compiled(regex_grammar(pattern), pattern);
}

struct Case {
  std::string_view pattern;
  std::vector<std::string_view> yes, no;
};

TEST(Regex, MatchesWholeTexts) {
  const Case cases[] = {
      {"", {""}, {"a"}},
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"a*b+c?", {"b", "aabbc", "bb"}, {"", "ac", "bcc"}},
      {"a*?b+?c??", {"b", "aabbc", "bb"}, {"", "ac", "bcc"}},
      {"(ab){2,3}", {"abab", "ababab"}, {"ab", "abababab", "aba"}},
      {"a{3}", {"aaa"}, {"aa", "aaaa"}},
      {"a{2,}", {"aa", "aaaaaaa"}, {"a"}},
      {"a{0,2}", {"", "aa"}, {"aaa"}},
      {"(a|b){100}",
       {std::string_view("abababababababababababababababababababababababababababababababababababababab"
                         "abababababababababababab")},
       {"ab"}},
      {"[a-cx]+", {"abcx", "x"}, {"d", ""}},
      {"[^a-c]", {"d", "\xC3\xA9", "\xF0\x9F\x98\x80"}, {"a", "\xC3", "dd"}},
      {"[]a-]", {}, {}},
      {"[a\\-z]+", {"a-z"}, {"b"}},
      {"[a-]+", {"a-"}, {"b"}},
      {".", {"a", "\xE2\x82\xAC"}, {"\n", "", "\xE2\x82"}},
      {"\\d{4}-\\d\\d", {"2024-01"}, {"2024-1", "\xD9\xA0\xD9\xA0\xD9\xA0\xD9\xA0-11"}},
      {"\\w+\\s\\W", {"a_9 !", "a\t-"}, {"a_9!", "a b"}},
      {"\\p{Lu}\\p{Ll}*", {"A", "Abc", "\xC3\x89t\xC3\xA9"}, {"a", "AB"}},
      {"\\P{L}", {"1", "-"}, {"a", "\xC3\xA9"}},
      {"\\u00e9\\x41\\u{1F600}\\uD83D\\uDE00",
       {"\xC3\xA9"
        "A\xF0\x9F\x98\x80\xF0\x9F\x98\x80"},
       {"e"}},
      {"^a$", {"a"}, {"aa"}},
      {"^a|b$", {"a", "b"}, {"ab"}},
      {"(^a|^b)c$", {"ac", "bc"}, {"c"}},
      {"(?:a(?<name>b)(?P<other>c))+", {"abc", "abcabc"}, {"ab"}},
      {"a\\.b\\/c\\\\", {"a.b/c\\"}, {"axb/c\\"}},
      {"{\"a\": \\d}", {"{\"a\": 1}"}, {"{}"}},
      {"x{a}", {"x{a}"}, {"x"}},
      {"[\\d\\s]+", {"1 2"}, {"a"}},
      {"\xC3\xA9+", {"\xC3\xA9\xC3\xA9"}, {"\xC3\xA9\xA9"}},
  };
  for (const Case& c : cases) {
    if (c.yes.empty() && c.no.empty()) {
      EXPECT_FALSE(regex_grammar(c.pattern)) << c.pattern;
      continue;
    }
    const auto grammar = compile(c.pattern);
    ASSERT_TRUE(grammar);
    for (const auto text : c.yes) EXPECT_TRUE(accepts(grammar, text)) << c.pattern << " on " << text;
    for (const auto text : c.no) EXPECT_FALSE(accepts(grammar, text)) << c.pattern << " on " << text;
  }
}

TEST(Regex, RefusesWithPosition) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"*a", "line 1, column 1: the quantifier '*' has nothing before it"},
      {"a|*", "line 1, column 3: the quantifier '*'"},
      {"a**", "line 1, column 3: a second quantifier '*'"},
      {"a{2}{3}", ""},
      {"(a", "line 1, column 1: the group has no closing ')'"},
      {"a)", "line 1, column 2: ')' without a '(' before it"},
      {"[a", "line 1, column 1: the class has no closing ']'"},
      {"[z-a]", "swap them"},
      {"a{3,2}", "line 1, column 2: the minimum 3 of the repetition exceeds its maximum 2"},
      {"\\1", "back"},
      {"(?=a)", "lookaround"},
      {"(?<!a)b", "lookaround"},
      {"a(?i)b", "flags are supported at the beginning"},
      {"(?m)a", "the flag 'm' is not supported"},
      {"\\b+a", "a quantifier after an anchor or word boundary"},
      {"a$b", "line 1, column 2: the anchors ^ and $ are supported only at the two ends"},
      {"a^", "anchor"},
      {"\\q", "escape"},
      {"\\", "backslash"},
      {"\\u12", "hexadecimal"},
      {"\\uD800", "U+D800 is not a character"},
      {"\\p{Greek}", "general"},
      {"a++", "possessive"},
      {"a{99999999999}", "a repetition count exceeds the limit of"},
      {"\xFF", "UTF-8"},
      {"(?P<n", "name"},
      {"^*", "anchor"},
      {"(a^)*", "anchor"},
  };
  for (const auto& [pattern, part] : cases) {
    const auto grammar = regex_grammar(pattern);
    if (pattern == "a{2}{3}") continue;
    ASSERT_FALSE(grammar) << pattern;
    EXPECT_NE(grammar.error().message.find(part), std::string::npos)
        << pattern << ": " << grammar.error().message;
    EXPECT_EQ(grammar.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Regex, WordBoundaries) {
  const Case cases[] = {
      {"\\bfoo\\b", {"foo"}, {"foob", ""}},
      {".*\\bfoo\\b.*", {"foo", "a foo", "foo.", "-foo-", "\xC3\xA9" "foo", "afoo foo"}, {"afoo", "foo1", "_foo", ""}},
      {"a\\b[ b]c?", {"a "}, {"ab", "abc"}},
      {"a\\B[ b]", {"ab"}, {"a "}},
      {"\\b", {}, {"", "a"}},
      {"\\B", {""}, {"a"}},
      {"(\\b[a-z]+\\b[ ,]?)+", {"one two", "one,two ", "a"}, {"one  two"}},
      {"\\b\\ba\\b", {"a"}, {"aa"}},
      {"\\b\\Ba", {}, {"a"}},
      {"^\\ba\\b$|^-\\b", {"a"}, {"-", "-a"}}};
  for (const Case& c : cases) {
    const auto grammar = regex_grammar(c.pattern);
    if (c.yes.empty()) {
      EXPECT_FALSE(grammar && CompiledGrammar::compile(*grammar, byte_vocabulary())) << c.pattern;
      continue;
    }
    ASSERT_TRUE(grammar) << c.pattern << grammar.error().message;
    const auto compiled = compile(c.pattern);
    for (const auto text : c.yes) EXPECT_TRUE(accepts(compiled, text)) << c.pattern << " on " << text;
    for (const auto text : c.no) EXPECT_FALSE(accepts(compiled, text)) << c.pattern << " on " << text;
  }
}

TEST(Regex, InlineFlags) {
  const Case cases[] = {{"(?i)ab[c-d]", {"abc", "ABD", "aBc"}, {"ab", "abe"}},
                        {"(?s)a.b", {"a\nb", "axb"}, {"ab"}},
                        {"(?is)a.", {"A\n"}, {"\n"}},
                        {"a(?i:b)c", {"abc", "aBc"}, {"Abc", "abC"}},
                        {"(?i:a|(?:b))c", {"Ac", "Bc"}, {"aC"}},
                        {"(?i)(a)(b)", {"AB"}, {"A"}}};
  for (const Case& c : cases) {
    const auto compiled = compile(c.pattern);
    ASSERT_TRUE(compiled);
    for (const auto text : c.yes) EXPECT_TRUE(accepts(compiled, text)) << c.pattern << " on " << text;
    for (const auto text : c.no) EXPECT_FALSE(accepts(compiled, text)) << c.pattern << " on " << text;
  }
}

TEST(Regex, CountsWithoutUnrolling) {
  const auto grammar = compile("(ab|c){3,1000000}d");
  EXPECT_LT(grammar->state_count(), 20u);
  EXPECT_FALSE(accepts(grammar, "abcd"));
  EXPECT_TRUE(accepts(grammar, "ababcd"));
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ab";
  EXPECT_TRUE(accepts(grammar, text + "d"));
  const auto exact = compile("[a-z]{500}");
  EXPECT_TRUE(accepts(exact, std::string(500, 'q')));
  EXPECT_FALSE(accepts(exact, std::string(499, 'q')));
  EXPECT_FALSE(accepts(exact, std::string(501, 'q')));
  const auto nested = compile("((a{100}b?){100}c){100}");
  EXPECT_LT(nested->state_count(), 30u);
}

TEST(Regex, MaskIsWhatAcceptTakes) {
  const auto vocabulary =
      byte_vocabulary({"ab", "abc", "bc", "\xC3\xA9", "\xC3\xA9\xC3", "\xA9x", "12", "1-", "--", "a1-b",
                       "aaaa", "aaaaaaaa", "bbbb", "abab", "ba", "\"a", "a\"", "\",\""});
  std::uint64_t seed = 7;
  const auto next = [&] { return seed = seed * 6364136223846793005ull + 1442695040888963407ull, seed >> 33; };
  for (const std::string_view pattern :
       {"(ab|c)*d?", "[a-z]{2,9}", "(a{1,20}b{2,30}){1,50}", "\"[^\"]*\"(,\"[^\"]{0,6}\")*",
        "\\d+(-\\d+)*|[ab]+1-b", "(\xC3\xA9|x)+", "(a|ab)(c|bcd)(d*)", "(a?){50}b", "((a|b){0,60}1){3}",
        "[ab]{57}c", ".{3,70}"}) {
    const auto compiled = CompiledGrammar::compile(*regex_grammar(pattern), vocabulary);
    ASSERT_TRUE(compiled) << pattern;
    for (int run = 0; run < 6; ++run) {
      Matcher matcher(*compiled);
      std::vector<TokenId> taken;
      for (int step = 0; step < 60 && !matcher.is_terminated(); ++step) {
        const auto mask = testing::mask_of(matcher, *vocabulary);
        ASSERT_EQ(mask, testing::brute_force_mask(matcher, *vocabulary)) << pattern << " after " << step;
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
        ASSERT_FALSE(allowed.empty()) << pattern;
        const TokenId token = allowed[next() % allowed.size()];
        ASSERT_TRUE(matcher.accept(token));
        taken.push_back(token);
        if (next() % 4 == 0) {
          const std::size_t back = next() % (taken.size() + 1);
          matcher.rollback(back);
          taken.resize(taken.size() - back);
          Matcher replay(*compiled);
          for (const TokenId t : taken) ASSERT_TRUE(replay.accept(t));
          ASSERT_EQ(testing::mask_of(matcher, *vocabulary), testing::mask_of(replay, *vocabulary));
        }
      }
    }
  }
}

// The tokens are random texts of characters that the patterns treat differently. Some tokens have incomplete
// characters.
TEST(Regex, MasksOfRandomPositions) {
  constexpr std::size_t kRuns = 2, kSteps = 12, kWords = 500;
  std::mt19937 random(11);
  const std::string_view pieces[] = {"a",
                                     "a",
                                     "a",
                                     "b",
                                     "b",
                                     "f",
                                     "x",
                                     "z",
                                     "1",
                                     "-",
                                     " ",
                                     "@",
                                     "\"",
                                     "\\",
                                     "\n",
                                     "\xC3\xA9",
                                     "\xE6\x97\xA5",
                                     "\xE4\xB8\x80",
                                     "\xE2\x80\x83",
                                     "\xC3",
                                     "\xA9",
                                     "\xE2\x80",
                                     "\xFF"};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kWords; ++i) {
    // Each word has only few different pieces, so that long words often match a pattern.
    const std::size_t first = random() % std::size(pieces), kinds = 1 + random() % 4;
    std::string& word = words.emplace_back();
    for (std::size_t left = 1 + random() % 20; left > 0; --left)
      word += pieces[(first + random() % kinds) % std::size(pieces)];
  }
  const auto vocabulary = byte_vocabulary(words);
  for (const std::string_view pattern : {"(ab|c)*d?",
                                         "[a-z]{2,9}",
                                         "(a{1,20}b{2,30}){1,50}",
                                         "\"[^\"]*\"(,\"[^\"]{0,6}\")*",
                                         "\\d+(-\\d+)*|[ab]+1-b",
                                         "(\xC3\xA9|x)+",
                                         "(a?){50}b",
                                         "((a|b){0,60}1){3}",
                                         "[ab]{57}c",
                                         ".{3,70}",
                                         "[a-f0-9]{3,30}z",
                                         "(?:[^\xE4\xB8\x80]+ )*[^\xE4\xB8\x80]+",
                                         "[^@]{3,60}@[^@]+",
                                         "[^x]*",
                                         "[a-z]+x",
                                         "\\S+( \\S+)*",
                                         ".{1,300}",
                                         "[A-Za-z0-9 ,.'-]{2,120}",
                                         "\\w+(-\\w+)*",
                                         "[ab]{2,30}[^b]{2,30}",
                                         "([^x]{1,40}x){2,3}",
                                         "(\xC3\xA9|ab){1,40}[ax]{0,33}",
                                         "\"([^\"\\\\]|\\\\[\"n])*\""}) {
    const auto compiled = CompiledGrammar::compile(*regex_grammar(pattern), vocabulary);
    ASSERT_TRUE(compiled) << pattern;
    for (std::size_t run = 0; run < kRuns; ++run) {
      Matcher matcher(*compiled);
      for (std::size_t step = 0; step < kSteps && !matcher.is_terminated(); ++step) {
        const auto mask = testing::mask_of(matcher, *vocabulary);
        ASSERT_EQ(mask, testing::brute_force_mask(matcher, *vocabulary)) << pattern << " after " << step;
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < mask.size(); ++i)
          if (mask[i]) allowed.push_back(static_cast<TokenId>(i));
        // The first allowed tokens are single bytes. Preferring them reaches all positions near the bounds.
        const std::size_t choice = random() % allowed.size();
        ASSERT_TRUE(matcher.accept(allowed[step % 3 == 0 ? choice : choice / 2]));
      }
    }
  }
}

}  // namespace
}  // namespace octavo::grammar
