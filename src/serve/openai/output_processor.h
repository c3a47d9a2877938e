// Converts the tokens of one answer to text and finds its end. Holds back text that may be the beginning of a
// stop string.
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

// Cause of the end of an answer: a stop token, a stop string, or (monostate) another cause.
using StopReason = std::variant<std::monostate, TokenId, std::string>;

// Output tokens [start, end) come from the weights of this version.
struct WeightSpan {
  std::string version;
  int start = 0, end = 0;
};

// A piece of an answer; all pieces joined are the whole answer.
struct AnswerPart {
  int index = 0;            // index of the choice
  std::string reasoning{};  // thoughts; they come before the text
  std::string text{};
  std::vector<TokenId> token_ids{};
  std::vector<TokenLogprobs> logprobs{};
  std::size_t thought_logprobs = 0;  // the first n log-probabilities belong to thoughts
  std::optional<FinishReason> finish{};
  StopReason stop_reason{};
  std::optional<KvTransferParams> kv_transfer{};  // set with the end of the last choice, if KV blocks are
                                                  // kept
  std::vector<WeightSpan> weights{};              // of the whole answer; set with the end of the choice

  void append(AnswerPart&& next);
  // Adds the tokens of this part to the spans of its choice. The last part takes the spans.
  void note_weights(const std::string& version, std::vector<WeightSpan>& spans);
};

// Marks of thoughts; each mark is one token. An answer may begin with thoughts.
struct Thinking {
  TokenId begin = 0, end = 0;
  bool open = false;          // the answer begins with thoughts, even without the begin mark
  bool shown = true;          // whether the client gets thoughts, with their tokens and log-probabilities
  std::string_view label{};   // removed from the beginning of thoughts
  std::string_view prefix{};  // if set, thoughts are written into the ordinary text, after this prefix
  // For gpt-oss: used instead of begin, end and open. Calls are written as text in the tool dialect `openai`.
  std::optional<HarmonyReader> harmony{};
  // For models that mark thoughts with words: used instead of begin and end.
  std::optional<ThoughtSplitter> text{};
  // Dialect of tool calls that end thoughts; null: calls do not end them.
  const grammar::ToolDialect* calls = nullptr;
  std::shared_ptr<const KnownTools> tools{};
};

class OutputProcessor {
 public:
  // Keeps references to the tokenizer, the parameters, the end token ids and `kept_special`. prompt_tail and
  // kept_special: see Detokenizer. Without `thinking` all text is content.
  OutputProcessor(const Tokenizer& tokenizer, const SamplingParams& sampling,
                  const std::vector<TokenId>& eos_ids, StopSplitter stops,
                  std::span<const TokenId> prompt_tail, std::optional<Thinking> thinking = std::nullopt,
                  std::span<const TokenId> kept_special = {});

  // Returns the text that is certain after this output. Must not be called after a part with `finish`.
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
  std::optional<CallWatch> watch_;  // finds calls in thoughts
  bool called_ = false;             // a call has ended the thoughts
  AnswerPart hidden_;               // tokens of hidden thoughts that may belong to a call
  int thoughts_before_call_ = 0;    // number of tokens of thoughts before the possible call
  bool at_text_start_ = true;       // no text has been written yet
  bool begins_anywhere_ = false;    // the mark that begins thoughts is never text, wherever it appears
  bool has_arguments_ = false;  // the call has arguments
  std::string prefix_;          // prefix of the answer, not written yet
  std::string label_;           // the part of the label with which the thoughts have begun
  bool in_label_ = false;
  int tokens_ = 0;
  int reasoning_tokens_ = 0;
  bool finished_ = false;
};

}  // namespace octavo::openai
