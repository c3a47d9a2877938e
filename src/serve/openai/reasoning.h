// Reasoning parsers: separate a model's thoughts from its answer.
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
  std::int32_t begin = 0, end = 0;  // tokens before and after the thoughts
  bool from_start = false;          // answers begin with thoughts, even without the begin token, unless the
                                    // prompt has closed them
  std::string_view label{};         // removed from the beginning of thoughts
  std::string_view prefix{};        // if set, thoughts stay in the text, and this prefix precedes the answer
  bool ends_at_call = false;        // a tool call ends open thoughts, as in vLLM for this model
  std::optional<HarmonyTokens> harmony{};  // for gpt-oss: used instead of all fields above
  const ThoughtMarks* text = nullptr;      // used instead of the tokens

  // Whether thoughts are marked by two tokens.
  bool tokens() const { return !harmony && !text; }
};

// Supported names of vLLM's --reasoning-parser.
std::vector<std::string_view> reasoning_parsers();

// Errors: unknown parser, or the tokenizer lacks its tokens.
Result<ReasoningRule> reasoning_rule(std::string_view parser, const Tokenizer& tokenizer);

// The parser whose tokens the tokenizer has; "": none.
std::string_view own_reasoning_parser(const Tokenizer& tokenizer);

// Whether the prompt ends with a begin mark of thoughts.
bool opens_thoughts(const ThoughtMarks& marks, std::span<const std::int32_t> prompt,
                    const Tokenizer& tokenizer);

// Whether an answer to this prompt begins with thoughts. If the last turn of the prompt opens or closes
// thoughts, this decides. Otherwise the rule decides, unless the request disabled thinking.
bool begins_with_thoughts(const ReasoningRule& rule, std::span<const std::int32_t> prompt,
                          const Tokenizer& tokenizer, bool turned_off);

}  // namespace octavo::openai
