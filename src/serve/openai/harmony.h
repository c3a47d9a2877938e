// Reads the Harmony format of gpt-oss: an answer is a sequence of messages. A message's header names its
// channel and, for a call, the recipient. Source: OpenAI's description of the format (openai-harmony).
//
//   <|channel|>analysis<|message|>THOUGHTS<|end|>
//   <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGUMENTS<|call|>
//   <|start|>assistant<|channel|>final<|message|>TEXT<|return|>
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace octavo::openai {

struct HarmonyTokens {
  std::int32_t start = 0, channel = 0, constrain = 0, message = 0, end = 0, call = 0, result = 0;

  // Returns nullopt if the tokenizer is not that of gpt-oss.
  static std::optional<HarmonyTokens> of(const Tokenizer& tokenizer);
};

// Assigns each output token to a part of the answer.
class HarmonyReader {
 public:
  enum class Section : std::uint8_t {
    header,
    thought,  // in the channel analysis, or in a message to a recipient that is not a function
    text,     // in the channel final, or in the channel commentary without a recipient
    call,     // in the arguments of a call of the tool function()
  };

  // Starts after the prompt, which may end within a message. Keeps a reference to the tokenizer. calls:
  // whether tool calls are read; if false, they count as reasoning.
  HarmonyReader(const HarmonyTokens& tokens, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                bool calls);

  // Returns whether the next token `id` is not in the body of a message, but between messages or in a header.
  bool marks(std::int32_t id) const;
  void take(std::int32_t id);

  Section section() const { return section_; }
  const std::string& function() const { return function_; }

 private:
  bool parts(std::int32_t id) const;
  void open_message();

  HarmonyTokens tokens_;
  const Tokenizer* tokenizer_;
  bool calls_;
  Section section_ = Section::header;
  std::vector<std::int32_t> role_, channel_;
  bool in_channel_ = false;
  std::string function_;
};

}  // namespace octavo::openai
