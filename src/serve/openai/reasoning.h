// Models that think before they answer: separates thoughts from the answer.
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
  std::int32_t begin = 0, end = 0;  // the tokens around thoughts
  bool from_start = false;          // a model thinks first without saying so, unless its prompt ends that
  std::string_view label{};         // what thoughts may begin with that is none
  std::string_view prefix{};        // thoughts are ordinary text, and this precedes the answer
  bool ends_at_call = false;        // a tool call ends thoughts that are still open, as vLLM has it for the model
  std::optional<HarmonyTokens> harmony{};  // of gpt-oss, in place of all that
  const ThoughtMarks* text = nullptr;      // in place of the tokens

  // Whether two tokens enclose thoughts.
  bool tokens() const { return !harmony && !text; }
};

// Supported names of vLLM's --reasoning-parser.
std::vector<std::string_view> reasoning_parsers();

// Errors: no such parser, or the tokenizer lacks its tokens.
Result<ReasoningRule> reasoning_rule(std::string_view parser, const Tokenizer& tokenizer);

// The parser that fits the tokenizer's tokens; "": none.
std::string_view own_reasoning_parser(const Tokenizer& tokenizer);

// Whether the prompt ends with the begin mark of thoughts.
bool opens_thoughts(const ThoughtMarks& marks, std::span<const std::int32_t> prompt,
                    const Tokenizer& tokenizer);

// Whether an answer to this prompt begins with thoughts. If the prompt opens or closes thoughts in its last
// turn, that decides. Otherwise the rule decides, unless the request disabled thinking.
bool begins_with_thoughts(const ReasoningRule& rule, std::span<const std::int32_t> prompt,
                          const Tokenizer& tokenizer, bool turned_off);

}  // namespace octavo::openai
