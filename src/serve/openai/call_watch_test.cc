#include "serve/openai/call_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "serve/openai/message_reader.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/reasoning.h"
#include "serve/openai/tool_forms.h"
#include "serve/test_tokenizer.h"

namespace octavo::openai {
namespace {

const std::vector<std::string> kMarks = {"<think>",
                                         "</think>",
                                         "<mm:think>",
                                         "</mm:think>",
                                         "<seed:think>",
                                         "</seed:think>",
                                         "[THINK]",
                                         "[/THINK]",
                                         "<|channel>",
                                         "<channel|>",
                                         "<|content_thinking|>",
                                         "<|end_message|>",
                                         "<|think:start|>",
                                         "<|think:end|>",
                                         "<|START_THINKING|>",
                                         "<|END_THINKING|>"};

struct Message {
  std::string reasoning, content;
  std::vector<std::pair<std::string, std::string>> calls;
  int thoughts = 0;
  std::size_t shown_tokens = 0;

  bool operator==(const Message&) const = default;
};

class CallWatchTest : public ::testing::Test {
 protected:
  // Reads an answer that begins with reasoning, in two pieces: ids[0, cut) and the rest.
  Message read(const ReasoningRule& rule, const grammar::ToolDialect& dialect, std::span<const TokenId> ids,
               std::size_t cut, bool shown = true) {
    const ToolUse use{.forced = std::nullopt, .dialect = &dialect, .tools = tools()};
    OutputProcessor reader(tokenizer_, sampling_, ends_, StopSplitter::create({}, false).value(), {},
                           Thinking{.begin = rule.begin,
                                    .end = rule.end,
                                    .open = true,
                                    .shown = shown,
                                    .calls = rule.ends_at_call ? &dialect : nullptr,
                                    .tools = use.tools},
                           ids);
    MessageReader messages(use);
    Message all;
    for (const bool last : {false, true}) {
      const std::span<const TokenId> piece = last ? ids.subspan(cut) : ids.first(cut);
      Output output;
      output.token_ids.assign(piece.begin(), piece.end());
      if (last) output.finished = FinishReason::length;
      const AnswerPart part = reader.take(std::move(output));
      all.shown_tokens += part.token_ids.size();
      const MessageDelta delta = messages.read(part);
      all.reasoning += delta.reasoning;
      all.content += delta.content;
      for (const CallDelta& call : delta.calls) {
        if (!call.name.empty()) all.calls.emplace_back(call.name, "");
        all.calls.back().second += call.arguments;
      }
    }
    all.thoughts = reader.reasoning_tokens();
    return all;
  }

  std::vector<ReasoningRule> rules() const {
    std::vector<ReasoningRule> all;
    for (const std::string_view name : reasoning_parsers())
      if (const auto rule = reasoning_rule(name, tokenizer_); rule && rule->tokens() && rule->prefix.empty())
        all.push_back(*rule);
    return all;
  }

  Tokenizer tokenizer_ = byte_tokenizer(kMarks);
  SamplingParams sampling_;
  std::vector<TokenId> ends_ = {kEndToken};
};

TEST_F(CallWatchTest, WhichThoughtsEndAtACall) {
  std::vector<std::string_view> ending;
  for (const std::string_view name : reasoning_parsers())
    if (const auto rule = reasoning_rule(name, tokenizer_); rule && rule->ends_at_call) ending.push_back(name);
  EXPECT_EQ(ending, (std::vector<std::string_view>{"deepseek_v4", "gemma4", "glm45", "glm47", "inkling", "kimi_k2",
                                                   "mimo", "minimax_m2", "mistral", "nemotron_v3", "qwen3",
                                                   "seed_oss", "step3p5"}));
}

// Tests every reasoning parser with every tool parser. For reasoning parsers that differ only in their
// markers, tests only one position of the split.
TEST_F(CallWatchTest, ACallEndsThoughtsWhereverTheStreamIsCut) {
  for (const ReasoningRule& rule : rules())
    for (const Form& form : forms()) {
      const grammar::ToolDialect& dialect = *grammar::tool_dialect(form.dialect);
      const std::string thoughts = "I think <of> it [1] {2}.\n";
      const std::vector<TokenId> ids = bytes_of(thoughts + form.text);
      const Message whole = read(rule, dialect, ids, 0);
      if (!rule.ends_at_call) {
        EXPECT_EQ(whole.reasoning, thoughts + form.text) << form.dialect;
        EXPECT_TRUE(whole.calls.empty()) << form.dialect;
      } else {
        ASSERT_EQ(whole.calls.size(), form.calls.size()) << form.dialect << whole.reasoning;
        for (std::size_t i = 0; i < form.calls.size(); ++i)
          EXPECT_EQ(whole.calls[i], std::pair(form.calls[i].name, form.calls[i].arguments)) << form.dialect;
        EXPECT_TRUE(whole.reasoning.starts_with(trimmed(thoughts))) << form.dialect;
        EXPECT_EQ(whole.thoughts, static_cast<int>(whole.reasoning.size())) << form.dialect;
      }
      const bool first = rule.begin == rules().front().begin;
      for (std::size_t cut = first ? 1 : ids.size() / 2; cut < ids.size(); cut += first ? 1 : ids.size())
        EXPECT_EQ(read(rule, dialect, ids, cut), whole) << form.dialect << " at " << cut;
    }
}

TEST_F(CallWatchTest, ProseAboutCallsIsThought) {
  const ReasoningRule rule = reasoning_rule("qwen3", tokenizer_).value();
  const grammar::ToolDialect& dialect = *grammar::tool_dialect("hermes");
  for (const std::string text :
       {"I could write <tool_call> here.", "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1", "<tool_call>\n{\"name\": \"ad",
        "<tool_call>{\"name\": \"add\", \"arguments\": {oops}}</tool_call>"}) {
    const std::vector<TokenId> ids = bytes_of(text);
    for (std::size_t cut = 0; cut < ids.size(); ++cut) {
      const Message got = read(rule, dialect, ids, cut);
      EXPECT_EQ(got.reasoning, text);
      EXPECT_EQ(got.content, "");
      EXPECT_TRUE(got.calls.empty());
      EXPECT_EQ(got.thoughts, static_cast<int>(ids.size()));
    }
  }
}

// The end marker of the reasoning may follow the call. If it is within an incomplete call, the text of that
// call belongs to the reasoning.
TEST_F(CallWatchTest, TheClosingMarkMayComeLate) {
  const ReasoningRule rule = reasoning_rule("qwen3", tokenizer_).value();
  const grammar::ToolDialect& dialect = *grammar::tool_dialect("hermes");
  const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
  std::vector<TokenId> ids = bytes_of("Hm. " + call);
  ids.push_back(rule.end);
  std::ranges::copy(bytes_of("Done."), std::back_inserter(ids));
  const Message got = read(rule, dialect, ids, 3);
  EXPECT_EQ(got.reasoning, "Hm.");
  EXPECT_EQ(got.calls.size(), 1U);
  EXPECT_EQ(got.content, "Done.");

  ids = bytes_of("A <tool_call> ");
  ids.push_back(rule.end);
  std::ranges::copy(bytes_of(call), std::back_inserter(ids));
  const Message closed = read(rule, dialect, ids, 3);
  EXPECT_EQ(closed.reasoning, "A <tool_call> ");
  EXPECT_EQ(closed.calls.size(), 1U);
}

TEST_F(CallWatchTest, OfHiddenThoughtsTheCallIsShown) {
  const ReasoningRule rule = reasoning_rule("qwen3", tokenizer_).value();
  const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
  const std::vector<TokenId> ids = bytes_of("Hm." + call);
  for (std::size_t cut = 0; cut < ids.size(); ++cut) {
    const Message got = read(rule, *grammar::tool_dialect("hermes"), ids, cut, false);
    EXPECT_EQ(got.reasoning, "");
    EXPECT_EQ(got.calls.size(), 1U);
    EXPECT_EQ(got.shown_tokens, call.size());
  }
}

}  // namespace
}  // namespace octavo::openai
