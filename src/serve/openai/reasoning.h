// Reasoning parsers: the markers with which a model's reasoning is separated from its answer.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/openai/harmony.h"
#include "serve/openai/thought_splitter.h"
#include "text/tokenizer.h"

namespace octavo::openai {

struct ReasoningRule {
  std::int32_t begin = 0, end = 0;  // tokens before and after the reasoning
  // whether answers begin with reasoning even without the begin token, unless the prompt has ended the
  // reasoning
  bool from_start = false;
  std::string_view label{};  // text that is removed from the beginning of the reasoning
  // if set, the reasoning stays in the text, and this prefix precedes the answer
  std::string_view prefix{};
  bool ends_at_call = false;  // whether a tool call ends the reasoning, as in vLLM for this model
  std::optional<HarmonyTokens> harmony{};  // for gpt-oss, used instead of all fields above
  const ThoughtMarks* text = nullptr;      // text markers; if set, used instead of `begin` and `end`

  bool tokens() const { return !harmony && !text; }
};

// Returns the names of vLLM's --reasoning-parser that this server supports.
std::vector<std::string_view> reasoning_parsers();

// Returns an error if the parser is unknown or the tokenizer lacks the parser's tokens.
Result<ReasoningRule> reasoning_rule(std::string_view parser, const Tokenizer& tokenizer);

// Returns the gpt-oss parser if the tokenizer has the tokens of gpt-oss, otherwise "".
std::string_view own_reasoning_parser(const Tokenizer& tokenizer);

// Returns whether the prompt ends with a marker that begins the reasoning.
bool opens_thoughts(const ThoughtMarks& marks, std::span<const std::int32_t> prompt,
                    const Tokenizer& tokenizer);

// Returns whether an answer to this prompt begins with reasoning. If the last turn of the prompt has a begin
// or end token of reasoning, the last such token decides. Otherwise the result is rule.from_start, or false
// if the request has turned thinking off.
bool begins_with_thoughts(const ReasoningRule& rule, std::span<const std::int32_t> prompt,
                          const Tokenizer& tokenizer, bool turned_off);

}  // namespace octavo::openai
