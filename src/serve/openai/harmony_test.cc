#include "serve/openai/harmony.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "serve/openai/message_reader.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/reasoning.h"
#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

const std::vector<std::string> kHarmonyMarks = {"<|start|>",   "<|channel|>", "<|constrain|>",
                                                "<|message|>", "<|call|>",    "<|return|>"};

class HarmonyTest : public ::testing::Test {
 protected:
  // Tokenises a text. Special tokens such as <|end|> are written as text.
  std::vector<TokenId> tokens(std::string_view text) const {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      TokenId id = static_cast<unsigned char>(text.front());
      std::size_t size = 1;
      if (text.starts_with("<|"))
        if (const std::size_t end = text.find("|>"); end != std::string_view::npos)
          if (const auto mark = tokenizer_.id_of(text.substr(0, end + 2))) id = *mark, size = end + 2;
      ids.push_back(id);
      text.remove_prefix(size);
    }
    return ids;
  }

  // Reads an answer (rng: in random pieces) and returns the message.
  MessageDelta read(std::string_view prompt, std::string_view answer, std::mt19937* rng = nullptr,
                    FinishReason reason = FinishReason::stop) {
    const std::vector<TokenId> ids = tokens(answer), before = tokens(prompt);
    const ReasoningRule rule = reasoning_rule("openai_gptoss", tokenizer_).value();
    OutputProcessor reader(
        tokenizer_, sampling_, eos_, StopSplitter::create(sampling_.stop, false).value(), {},
        Thinking{.harmony = HarmonyReader(*rule.harmony, tokenizer_, before, use_.dialect)});
    MessageReader messages(use_);
    MessageDelta all;
    std::size_t at = 0;
    while (!reader.finished()) {
      const std::size_t size = rng ? 1 + (*rng)() % 7 : ids.size();
      Output output;
      for (; at < ids.size() && output.token_ids.size() < size; ++at) output.token_ids.push_back(ids[at]);
      if (at == ids.size()) output.finished = reason;
      const MessageDelta delta = messages.read(reader.take(std::move(output)));
      all.reasoning += delta.reasoning;
      all.content += delta.content;
      for (const CallDelta& call : delta.calls) {
        if (!call.name.empty()) all.calls.push_back({call.index, "", call.name, ""});
        all.calls.back().arguments += call.arguments;
      }
    }
    thought_ = reader.reasoning_tokens();
    return all;
  }

  Tokenizer tokenizer_ = byte_tokenizer(kHarmonyMarks);
  SamplingParams sampling_;
  std::vector<TokenId> eos_ = {*tokenizer_.id_of("<|call|>"), *tokenizer_.id_of("<|return|>")};
  ToolUse use_{.forced = std::nullopt,
               .dialect = grammar::tool_dialect("openai"),
               .tools = std::make_shared<const KnownTools>(KnownTools{{"get_weather", {}}})};
  int thought_ = 0;
};

constexpr std::string_view kPrompt = "<|start|>user<|message|>Hi<|end|><|start|>assistant";
constexpr std::string_view kCall =
    "<|channel|>analysis<|message|>Let me see.<|end|>"
    "<|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    "{\"city\": \"Köln\"}<|call|>";

TEST_F(HarmonyTest, ChannelsArePartsOfTheMessage) {
  const MessageDelta message = read(kPrompt,
                                    "<|channel|>analysis<|message|>Hm, 2.<|end|>"
                                    "<|start|>assistant<|channel|>final<|message|>It is 2.<|return|>");
  EXPECT_EQ(message.reasoning, "Hm, 2.");
  EXPECT_EQ(message.content, "It is 2.");
  EXPECT_TRUE(message.calls.empty());
  EXPECT_EQ(thought_, 6);
  EXPECT_EQ(read(kPrompt, "<|message|>plain<|return|>").content, "plain");
}

TEST_F(HarmonyTest, ReadsCalls) {
  MessageDelta message = read(kPrompt, kCall);
  EXPECT_EQ(message.reasoning, "Let me see.");
  EXPECT_EQ(message.content, "One moment.");
  ASSERT_EQ(message.calls.size(), 1U);
  EXPECT_EQ(message.calls[0].name, "get_weather");
  EXPECT_EQ(message.calls[0].arguments, "{\"city\": \"Köln\"}");
  // The recipient replaces the role, the call has no arguments, and a second call follows.
  message = read(kPrompt,
                 " to=functions.stop<|channel|>commentary json<|message|><|call|>"
                 "<|start|>assistant to=functions.get_weather<|channel|>commentary<|message|>{}<|call|>");
  ASSERT_EQ(message.calls.size(), 2U);
  EXPECT_EQ(message.calls[0].name, "stop");
  EXPECT_EQ(message.calls[0].arguments, "{}");
  EXPECT_EQ(message.calls[1].name, "get_weather");
  EXPECT_EQ(message.content, "");
}

TEST_F(HarmonyTest, CallsThatNobodyWantsAreThoughts) {
  use_ = {};
  const MessageDelta message = read(kPrompt, kCall);
  EXPECT_EQ(message.reasoning, "Let me see.{\"city\": \"Köln\"}");
  EXPECT_EQ(message.content, "One moment.");
  use_.dialect = grammar::tool_dialect("openai");
  EXPECT_EQ(read(kPrompt, "<|channel|>commentary to=python<|message|>1+1<|call|>").reasoning, "1+1");
}

TEST_F(HarmonyTest, GoesOnWithTheMessageThatThePromptOpened) {
  const std::string opened = std::string(kPrompt) + "<|channel|>final<|message|>It is";
  EXPECT_EQ(read(opened, " 2.<|return|>").content, " 2.");
  const MessageDelta message = read(std::string(kPrompt) + "<|channel|>analysis<|message|>So",
                                    " it is.<|end|><|start|>assistant<|channel|>final<|message|>2<|return|>");
  EXPECT_EQ(message.reasoning, " it is.");
  EXPECT_EQ(message.content, "2");
}

// Reads complete answers, and answers that are cut at any position.
TEST_F(HarmonyTest, PiecesJoinToTheWhole) {
  std::mt19937 rng(7);
  const std::string text = std::string(kCall) + "<|start|>assistant<|channel|>final<|message|>Däne.";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    const MessageDelta whole = read(kPrompt, cut, nullptr, FinishReason::length);
    for (int round = 0; round < 3; ++round) {
      const MessageDelta pieces = read(kPrompt, cut, &rng, FinishReason::length);
      EXPECT_EQ(pieces.reasoning, whole.reasoning) << cut;
      EXPECT_EQ(pieces.content, whole.content) << cut;
      ASSERT_EQ(pieces.calls.size(), whole.calls.size()) << cut;
      for (std::size_t i = 0; i < whole.calls.size(); ++i)
        EXPECT_EQ(pieces.calls[i].arguments, whole.calls[i].arguments) << cut;
    }
  }
}

TEST_F(HarmonyTest, AStopStringEndsTheTextAndNoHeader) {
  sampling_.stop = {"moment", "assistant"};
  const MessageDelta message = read(kPrompt, kCall);
  EXPECT_EQ(message.content, "One ");
  EXPECT_TRUE(message.calls.empty());
}

TEST_F(HarmonyTest, TokenizersAskForIt) {
  EXPECT_EQ(own_reasoning_parser(tokenizer_), "openai_gptoss");
  const Tokenizer other = byte_tokenizer();
  EXPECT_EQ(own_reasoning_parser(other), "");
  EXPECT_FALSE(reasoning_rule("openai_gptoss", other));
}

}  // namespace
}  // namespace octavo::openai
