#include "serve/openai/thought_splitter.h"

#include <gtest/gtest.h>

#include "serve/openai/reasoning.h"
#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

struct Case {
  const char *parser, *answer, *thought, *text;
};
constexpr Case kCases[] = {
    {"granite", "Here is my thought process: a: b\nHere is my response: c", " a: b\n", " c"},
    {"granite", "Here's my thought process:Here's my resp!Here's my response:x", "Here's my resp!", "x"},
    {"granite", "Here is my opinion", "", "Here is my opinion"},
    {"granite", "Here is my thought process: cut", " cut", ""},
    {"olmo3", "<think>a < b</think>c</think>", "a < b", "c</think>"},
    {"olmo3", " a</thin</think>\nc", " a</thin", "\nc"},
    {"hunyuan_a13b", "<think>\na\n</think>\n<answer>\nb\n</answer>", "a", "b"},
    {"hunyuan_a13b", "<think>\n\n</think>\n<answer>\nb", "", "b"},
    {"hunyuan_a13b", "b <", "", "b <"},
};

TEST(ThoughtSplitter, SplitsInTheSameWayForAnyPieces) {
  const Tokenizer tokenizer = byte_tokenizer();
  for (const Case& c : kCases) {
    const ReasoningRule rule = reasoning_rule(c.parser, tokenizer).value();
    ASSERT_NE(rule.text, nullptr);
    const std::string_view answer = c.answer;
    for (std::size_t size = 1; size <= answer.size(); ++size) {
      ThoughtSplitter splitter(*rule.text, rule.from_start);
      ThoughtSplitter::Step all;
      const auto add = [&](const ThoughtSplitter::Step& step) {
        all.thought += step.thought;
        all.text += step.text;
      };
      for (std::size_t at = 0; at < answer.size(); at += size) add(splitter.push(answer.substr(at, size)));
      add(splitter.finish());
      EXPECT_EQ(all.thought, c.thought) << c.answer << " by " << size;
      EXPECT_EQ(all.text, c.text) << c.answer << " by " << size;
    }
  }
}

struct TokenCase {
  const char *parser, *begin, *end, *label, *prefix;
};
constexpr TokenCase kTokenCases[] = {
    {"gemma4", "<|channel>", "<channel|>", "thought\n", ""},
    {"hy_v3", "<think>", "</think>", "", ""},
    {"inkling", "<|content_thinking|>", "<|end_message|>", "", ""},
    {"minimax_m2_append_think", "<think>", "</think>", "", "<think>"},
    {"minimax_m3", "<mm:think>", "</mm:think>", "", ""},
};

TEST(ReasoningRules, AreOfTokens) {
  for (const TokenCase& c : kTokenCases) {
    const Tokenizer tokenizer = byte_tokenizer({c.begin, c.end});
    const ReasoningRule rule = reasoning_rule(c.parser, tokenizer).value();
    EXPECT_EQ(rule.begin, kTestVocabulary) << c.parser;
    EXPECT_EQ(rule.end, kTestVocabulary + 1) << c.parser;
    EXPECT_EQ(rule.label, c.label) << c.parser;
    EXPECT_EQ(rule.prefix, c.prefix) << c.parser;
    const std::vector<TokenId> opened = {'a', rule.begin}, closed = {'a', rule.begin, rule.end}, plain = {'a'};
    EXPECT_TRUE(begins_with_thoughts(rule, opened, tokenizer, false)) << c.parser;
    EXPECT_FALSE(begins_with_thoughts(rule, closed, tokenizer, false)) << c.parser;
    EXPECT_EQ(begins_with_thoughts(rule, plain, tokenizer, false), *c.prefix != 0) << c.parser;
    EXPECT_FALSE(reasoning_rule(c.parser, byte_tokenizer()).has_value()) << c.parser;
  }
}

}  // namespace
}  // namespace octavo::openai
