// Converts the tokens of one answer to text and finds the answer's end. Text that may be the beginning of a
// stop string is held back.
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

// The stop token or stop string that ended an answer; monostate if the answer ended for another reason.
using StopReason = std::variant<std::monostate, TokenId, std::string>;

// Version of the weights that computed the output tokens [start, end).
struct WeightSpan {
  std::string version;
  int start = 0, end = 0;
};

// A piece of an answer. append() joins pieces to a larger piece or the whole answer.
struct AnswerPart {
  int index = 0;
  std::string reasoning{};  // reasoning that precedes `text`
  std::string text{};
  std::vector<TokenId> token_ids{};
  std::vector<TokenLogprobs> logprobs{};
  // number of entries at the beginning of `logprobs` that belong to reasoning
  std::size_t thought_logprobs = 0;
  std::optional<FinishReason> finish{};
  StopReason stop_reason{};
  // set at the end of the last answer, if the engine keeps KV blocks
  std::optional<KvTransferParams> kv_transfer{};
  std::vector<WeightSpan> weights{};  // weight versions of the whole answer; set at the end of the answer

  void append(AnswerPart&& next);
  // Adds the tokens of this part to `spans`, the spans of the answer. The last part gets the spans as
  // `weights`.
  void note_weights(const std::string& version, std::vector<WeightSpan>& spans);
};

// How a model marks its reasoning. Each marker is one token, such as <think>.
struct Thinking {
  TokenId begin = 0, end = 0;
  bool open = false;         // whether the answer is in its reasoning now; at the beginning: whether it
                             // begins with reasoning without a begin token
  bool shown = true;         // whether the client gets the reasoning, its tokens and its log-probabilities
  std::string_view label{};  // text that is removed from the beginning of the reasoning
  // if set, the reasoning stays in the text, and this prefix precedes the answer
  std::string_view prefix{};
  // For gpt-oss, used instead of begin, end and open. Calls are written as text in the tool dialect
  // `openai`.
  std::optional<HarmonyReader> harmony{};
  // For models whose markers are text, used instead of begin and end.
  std::optional<ThoughtSplitter> text{};
  // Dialect of the tool calls that end the reasoning. Null: calls do not end it.
  const grammar::ToolDialect* calls = nullptr;
  std::shared_ptr<const KnownTools> tools{};
};

class OutputProcessor {
 public:
  // Keeps references to the tokenizer, `sampling`, `eos_ids` and `kept_special`. See Detokenizer for
  // prompt_tail and kept_special. If `thinking` is nullopt, all text is content.
  OutputProcessor(const Tokenizer& tokenizer, const SamplingParams& sampling,
                  const std::vector<TokenId>& eos_ids, StopSplitter stops,
                  std::span<const TokenId> prompt_tail, std::optional<Thinking> thinking = std::nullopt,
                  std::span<const TokenId> kept_special = {});

  // Returns the text that no later output can change. Must not be called after a part with `finish`.
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
    return thinking_ && thinking_->harmony && thinking_->harmony->section() == HarmonyReader::Section::call;
  }
  void end(const Output& output, AnswerPart& part);
  bool is_stop_token(const Output& output, std::size_t position) const;

  const SamplingParams* sampling_;
  const std::vector<TokenId>* eos_ids_;
  Detokenizer detokenizer_;
  StopSplitter stops_;
  std::optional<Thinking> thinking_;
  std::optional<CallWatch> watch_;  // finds calls within reasoning
  bool called_ = false;             // whether a call has ended the reasoning
  AnswerPart hidden_;               // tokens of hidden reasoning that may belong to a call
  int thoughts_before_call_ = 0;    // number of reasoning tokens before the possible call
  bool at_text_start_ = true;       // whether no text has been written yet
  bool begins_anywhere_ = false;    // whether the begin token begins reasoning at any position of the answer
  bool has_arguments_ = false;
  std::string prefix_;  // prefix of the answer that is not written yet
  std::string label_;   // beginning of the reasoning, while it could still be the label
  bool in_label_ = false;
  int tokens_ = 0;
  int reasoning_tokens_ = 0;
  bool finished_ = false;
};

}  // namespace octavo::openai
