#include "serve/openai/output_processor.h"

#include <gtest/gtest.h>

#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

const std::vector<TokenId> kEnds = {kEndToken};

class OutputProcessorTest : public ::testing::Test {
 protected:
  // Returns the whole answer. size: number of tokens in each output of the engine.
  AnswerPart answer(const std::vector<TokenId>& tokens, std::size_t size,
                    FinishReason end = FinishReason::stop) {
    OutputProcessor a(tokenizer_, sampling_, kEnds,
                      StopSplitter::create(sampling_.stop, sampling_.include_stop_str_in_output).value(), {},
                      thinking_, kept_);
    AnswerPart all;
    for (std::size_t at = 0; at < tokens.size() && !a.finished(); at += size) {
      Output output;
      for (std::size_t i = at; i < std::min(at + size, tokens.size()); ++i)
        output.token_ids.push_back(tokens[i]);
      if (at + size >= tokens.size()) output.finished = end;
      all.append(a.take(std::move(output)));
    }
    counted_ = a.tokens();
    thought_ = a.reasoning_tokens();
    return all;
  }

  Tokenizer tokenizer_ = byte_tokenizer();
  SamplingParams sampling_;
  std::optional<Thinking> thinking_;
  std::vector<TokenId> kept_;
  int counted_ = 0;
  int thought_ = 0;
};

TEST_F(OutputProcessorTest, TextIsWholeForAnySteps) {
  std::vector<TokenId> tokens = bytes_of("héllo 🎈 wörld");
  tokens.push_back(kEndToken);
  for (std::size_t size = 1; size <= tokens.size(); ++size) {
    const AnswerPart all = answer(tokens, size);
    EXPECT_EQ(all.text, "héllo 🎈 wörld");
    EXPECT_EQ(all.finish, FinishReason::stop);
    EXPECT_EQ(counted_, static_cast<int>(tokens.size()));
  }
}

TEST_F(OutputProcessorTest, AStopStringOverTokenBoundariesEndsIt) {
  sampling_.stop = {"world", "lo w"};
  for (std::size_t size = 1; size <= 13; ++size) {
    const AnswerPart all = answer(bytes_of("hello world!!"), size, FinishReason::length);
    EXPECT_EQ(all.text, "hel");
    EXPECT_EQ(all.finish, FinishReason::stop);
    EXPECT_EQ(std::get<std::string>(all.stop_reason), "lo w");
    EXPECT_EQ(counted_, 7);
  }
  sampling_.include_stop_str_in_output = true;
  EXPECT_EQ(answer(bytes_of("hello world!!"), 1).text, "hello w");
}

TEST_F(OutputProcessorTest, WhatWasHeldBackComesAtTheEnd) {
  sampling_.stop = {"world"};
  const AnswerPart all = answer(bytes_of("hello wor"), 1, FinishReason::length);
  EXPECT_EQ(all.text, "hello wor");
  EXPECT_EQ(all.finish, FinishReason::length);
}

TEST_F(OutputProcessorTest, BeforeMinTokensNoStopStringCounts) {
  sampling_.stop = {"a"};
  sampling_.min_tokens = 3;
  EXPECT_EQ(answer(bytes_of("aabba"), 1).text, "aabb");
}

TEST_F(OutputProcessorTest, ThoughtsComeFirst) {
  sampling_.stop = {"cX"};
  for (const bool open : {false, true})
    for (std::size_t size = 1; size <= 12; ++size) {
      thinking_ = Thinking{.begin = '<', .end = '>', .open = open};
      AnswerPart all = answer(bytes_of("\n<a <b\xC3>X <c>"), size, FinishReason::length);
      EXPECT_EQ(all.reasoning, open ? "\na <b\uFFFD" : "a <b\uFFFD");
      EXPECT_EQ(all.text, open ? "X <c>" : "\nX <c>");
      EXPECT_EQ(thought_, open ? 6 : 5);
      EXPECT_EQ(counted_, 13);
      EXPECT_EQ(all.token_ids.size(), 13u);

      all = answer(bytes_of("no <thoughts>"), size, FinishReason::length);
      EXPECT_EQ(all.text, open ? "" : "no <thoughts>");
      EXPECT_EQ(all.reasoning, open ? "no <thoughts" : "");
      thinking_->shown = false;
      all = answer(bytes_of("<a>b"), size, FinishReason::length);
      EXPECT_EQ(all.reasoning, "");
      EXPECT_EQ(all.text, "b");
      EXPECT_EQ(all.token_ids.back(), 'b');
    }
}

TEST_F(OutputProcessorTest, ALabelOfThoughtsIsNotOfThem) {
  for (std::size_t size = 1; size <= 12; ++size) {
    thinking_ = Thinking{.begin = '<', .end = '>', .label = "hm\n"};
    AnswerPart all = answer(bytes_of("<hm\nso>yes"), size, FinishReason::length);
    EXPECT_EQ(all.reasoning, "so");
    EXPECT_EQ(all.text, "yes");
    EXPECT_EQ(answer(bytes_of("<hmm>yes"), size, FinishReason::length).reasoning, "hmm");
    all = answer(bytes_of("<hm>yes"), size, FinishReason::length);
    EXPECT_EQ(all.reasoning, "hm");
    EXPECT_EQ(all.text, "yes");
    EXPECT_EQ(answer(bytes_of("<h"), size, FinishReason::length).reasoning, "h");
    EXPECT_EQ(answer(bytes_of("hm\n<x>"), size, FinishReason::length).text, "hm\n<x>");
    thinking_->open = true;
    EXPECT_EQ(answer(bytes_of("hm\nso>yes"), size, FinishReason::length).reasoning, "so");
  }
}

// Gemma 4 also reasons after some text. A begin marker that is not a special token is only recognized at the
// beginning.
TEST_F(OutputProcessorTest, ASpecialMarkBeginsThoughtsAnywhere) {
  std::vector<TokenId> tokens = bytes_of("a>b");
  tokens.insert(tokens.begin() + 1, {kMarkToken, 't', '\n', 's'});
  for (std::size_t size = 1; size <= tokens.size(); ++size) {
    thinking_ = Thinking{.begin = kMarkToken, .end = '>', .label = "t\n"};
    const AnswerPart all = answer(tokens, size, FinishReason::length);
    EXPECT_EQ(all.reasoning, "s");
    EXPECT_EQ(all.text, "ab");
  }
  thinking_ = Thinking{.begin = '<', .end = '>'};
  EXPECT_EQ(answer(bytes_of("a<s>b"), 1, FinishReason::length).text, "a<s>b");
}

TEST_F(OutputProcessorTest, AnEndOfThoughtsThatComesFirstIsNoText) {
  thinking_ = Thinking{.begin = '<', .end = '>'};
  const AnswerPart all = answer(bytes_of("\n>a > b"), 1, FinishReason::length);
  EXPECT_EQ(all.reasoning, "");
  EXPECT_EQ(all.text, "\na > b");
}

TEST_F(OutputProcessorTest, ThoughtsMayBeTextBehindAPrefix) {
  for (std::size_t size = 1; size <= 5; ++size) {
    thinking_ = Thinking{.begin = '<', .end = '>', .open = true, .prefix = "<"};
    const AnswerPart all = answer(bytes_of("a>b"), size, FinishReason::length);
    EXPECT_EQ(all.reasoning, "");
    EXPECT_EQ(all.text, "<a>b");
  }
}

// A stop string must not match across the end of the reasoning. Here "c" is before the end, and "X" after it.
TEST_F(OutputProcessorTest, StopStringsEndAtTheThoughts) {
  sampling_.stop = {"cX"};
  thinking_ = Thinking{.begin = '<', .end = '>', .open = true};
  const AnswerPart all = answer(bytes_of("abc>X cX!"), 1, FinishReason::length);
  EXPECT_EQ(all.reasoning, "abc");
  EXPECT_EQ(all.text, "X ");
  EXPECT_EQ(all.finish, FinishReason::stop);
}

TEST_F(OutputProcessorTest, KeepsTheSpecialTokensItIsTold) {
  EXPECT_EQ(answer({'h', kMarkToken, 'i'}, 1).text, "hi");
  kept_ = {kMarkToken};
  EXPECT_EQ(answer({'h', kMarkToken, 'i'}, 1).text, "h<|mark|>i");
}

TEST_F(OutputProcessorTest, TheTokenThatEndsItIsNotText) {
  sampling_.skip_special_tokens = false;
  EXPECT_EQ(answer({'h', 'i', kEndToken}, 1).text, "hi");
  EXPECT_EQ(answer({'h', 'i', kMarkToken}, 1).text, "hi<|mark|>");
  sampling_.include_stop_str_in_output = true;
  EXPECT_EQ(answer({'h', 'i', kEndToken}, 1).text, "hi<|end|>");
}

}  // namespace
}  // namespace octavo::openai
