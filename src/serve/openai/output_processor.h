// Converts one answer's tokens to text, finds its end, and never sends a part of a stop string.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "request/request.h"
#include "serve/openai/call_watch.h"
#include "serve/openai/harmony.h"
#include "serve/openai/thought_splitter.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace octavo::openai {

// Cause of an answer's end: a stop token, a stop string, or another one.
using StopReason = std::variant<std::monostate, TokenId, std::string>;

// A piece of an answer, or (joined) all of it.
struct AnswerPart {
  int index = 0;            // the choice
  std::string reasoning{};  // thoughts, which come before the text
  std::string text{};
  std::vector<TokenId> token_ids{};
  std::vector<TokenLogprobs> logprobs{};
  std::size_t thought_logprobs = 0;  // of these are of thoughts
  std::optional<FinishReason> finish{};
  StopReason stop_reason{};
  std::optional<KvTransferParams> kv_transfer{};  // with the end of the last choice, where blocks are kept

  void append(AnswerPart&& next);
};

// Marks of thoughts, each a token; an answer may begin with thoughts.
struct Thinking {
  TokenId begin = 0, end = 0;
  bool open = false;  // the answer begins with thoughts, whether or not it says so
  bool shown = true;  // they are reported, with their tokens and log-probabilities
  std::string_view label{};   // not of the thoughts, where they begin with it
  std::string_view prefix{};  // if given, thoughts are ordinary text after this prefix
  // gpt-oss: used instead of begin, end and open. Calls arrive as text in the tool dialect `openai`.
  std::optional<HarmonyReader> harmony{};
  // Models that mark thoughts with words: used instead of begin and end.
  std::optional<ThoughtSplitter> text{};
  // A call to one of these tools ends thoughts; null: calls do not.
  const grammar::ToolDialect* calls = nullptr;
  std::shared_ptr<const KnownTools> tools{};
};

class OutputProcessor {
 public:
  // Refers to the tokenizer, the parameters, the ids that end a text and `kept_special`. `prompt_tail`,
  // `kept_special`: see Detokenizer. Without `thinking` everything is content.
  OutputProcessor(const Tokenizer& tokenizer, const SamplingParams& sampling,
                  const std::vector<TokenId>& eos_ids, StopSplitter stops,
                  std::span<const TokenId> prompt_tail, std::optional<Thinking> thinking = std::nullopt,
                  std::span<const TokenId> kept_special = {});

  // The text that is certain after this output. Must not be called after a part with `finish`.
  AnswerPart take(Output&& output);

  bool finished() const { return finished_; }
  int tokens() const { return tokens_; }
  int reasoning_tokens() const { return reasoning_tokens_; }

 private:
  bool toggle_reasoning(TokenId id, AnswerPart& part);
  void switch_message(TokenId id, AnswerPart& part);
  void close_message(AnswerPart& part, bool whole);
  void add_text(std::string_view piece, AnswerPart& part);
  void add_thought(std::string_view piece, AnswerPart& part);
  void settle_label(AnswerPart& part);
  void add_split(const ThoughtSplitter::Step& step, AnswerPart& part);
  void add_to_target(std::string_view piece, AnswerPart& part);
  void put(std::string_view text, AnswerPart& part);
  void take_token(TokenId id, TokenLogprobs* logprobs, AnswerPart& part);
  void settle_hidden(AnswerPart& part);
  bool thinks() const { return thinking_ && thinking_->open; }
  bool calls() const {
    return thinking_ && thinking_->harmony && thinking_->harmony->place() == HarmonyReader::Place::call;
  }
  void end(const Output& output, AnswerPart& part);
  bool is_stop_token(const Output& output, std::size_t position) const;

  const SamplingParams* sampling_;
  const std::vector<TokenId>* eos_ids_;
  Detokenizer detokenizer_;
  StopSplitter stops_;
  std::optional<Thinking> thinking_;
  std::optional<CallWatch> watch_;  // of the thoughts
  bool called_ = false;             // a call has ended them
  AnswerPart hidden_;               // tokens of thoughts that are not shown, which may be those of a call
  int thoughts_before_call_ = 0;    // tokens, before what may be a call
  bool at_text_start_ = true;   // no text has come yet
  bool begins_anywhere_ = false;  // the mark that begins thoughts is no text, wherever it comes
  bool has_arguments_ = false;  // the call has arguments
  std::string prefix_;          // of the answer, until it has begun
  std::string label_;           // of thoughts that have begun with as much of it
  bool in_label_ = false;
  int tokens_ = 0;
  int reasoning_tokens_ = 0;
  bool finished_ = false;
};

}  // namespace octavo::openai
