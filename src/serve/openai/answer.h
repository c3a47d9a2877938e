// One answer on its way out: token ids become text, the end is found, nothing of a stop string leaks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "request/request.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace octavo::openai {

// What ended an answer: nothing special, a stop token, or a stop string.
using StopReason = std::variant<std::monostate, TokenId, std::string>;

// A piece of an answer, or (joined) all of it.
struct AnswerPart {
  int index = 0;  // the choice
  std::string text{};
  std::vector<TokenId> token_ids{};
  std::vector<TokenLogprobs> logprobs{};
  std::optional<FinishReason> finish{};
  StopReason stop_reason{};

  void append(AnswerPart&& next);
};

class Answer {
 public:
  // Keeps references to the tokenizer, the parameters and the ids that end a text. `prompt_tail`: see
  // Detokenizer.
  Answer(const Tokenizer& tokenizer, const SamplingParams& sampling, const std::vector<TokenId>& eos_ids,
         StopSplitter stops, std::span<const TokenId> prompt_tail);

  // The text that is certain after this output. Once a part has `finish`, later outputs must not be given.
  AnswerPart take(Output&& output);

  bool finished() const { return finished_; }
  int tokens() const { return tokens_; }

 private:
  void add_text(std::string_view piece, AnswerPart& part);
  void end(const Output& output, AnswerPart& part);
  bool silent(const Output& output, std::size_t position) const;

  const SamplingParams* sampling_;
  const std::vector<TokenId>* eos_ids_;
  Detokenizer detokenizer_;
  StopSplitter stops_;
  int tokens_ = 0;
  bool finished_ = false;
};

}  // namespace octavo::openai
