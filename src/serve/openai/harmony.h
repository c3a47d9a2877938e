// gpt-oss' Harmony format: an answer is a row of messages, whose headers say in which channel they are and,
// of calls, whom they are for. Source: OpenAI's description of the format (openai-harmony).
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

  // Nothing: the tokenizer is not one of gpt-oss.
  static std::optional<HarmonyTokens> of(const Tokenizer& tokenizer);
};

// Says of each token of an answer which part of it the token belongs to.
class HarmonyReader {
 public:
  enum class Place : std::uint8_t {
    header,   // of a message
    thought,  // analysis, and what is addressed to nobody here
    text,     // final, and commentary that is addressed to nobody
    call,     // the arguments of function()
  };

  // Begins behind the prompt, which may have opened a message. Keeps the tokenizer. calls: those of functions
  // are wanted; otherwise they are thoughts.
  HarmonyReader(const HarmonyTokens& tokens, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                bool calls);

  // Whether the token stands between messages or in a header, and not in a message's body.
  bool marks(std::int32_t id) const;
  // Goes on behind the token.
  void take(std::int32_t id);

  Place place() const { return place_; }
  const std::string& function() const { return function_; }

 private:
  bool parts(std::int32_t id) const;
  void open_message();

  HarmonyTokens tokens_;
  const Tokenizer* tokenizer_;
  bool calls_;
  Place place_ = Place::header;
  std::vector<std::int32_t> role_, channel_;  // of the header, as far as it has come
  bool in_channel_ = false;
  std::string function_;
};

}  // namespace octavo::openai
