#include "serve/openai/output_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace octavo::openai {

void AnswerPart::append(AnswerPart&& next) {
  reasoning += next.reasoning;
  text += next.text;
  token_ids.insert(token_ids.end(), next.token_ids.begin(), next.token_ids.end());
  std::ranges::move(next.logprobs, std::back_inserter(logprobs));
  thought_logprobs += next.thought_logprobs;
  if (!next.finish) return;
  finish = next.finish;
  stop_reason = std::move(next.stop_reason);
  kv_transfer = std::move(next.kv_transfer);
  weights = std::move(next.weights);
}

void AnswerPart::note_weights(const std::string& version, std::vector<WeightSpan>& spans) {
  const int start = spans.empty() ? 0 : spans.back().end;
  const int after = start + static_cast<int>(token_ids.size());
  if (after > start && (spans.empty() || spans.back().version != version))
    spans.push_back({version, start, after});
  if (!spans.empty()) spans.back().end = after;
  if (finish) weights = std::move(spans);
}

OutputProcessor::OutputProcessor(const Tokenizer& tokenizer, const SamplingParams& sampling,
                                 const std::vector<TokenId>& eos_ids, StopSplitter stops,
                                 std::span<const TokenId> prompt_tail, std::optional<Thinking> thinking,
                                 std::span<const TokenId> kept_special)
    : sampling_(&sampling),
      eos_ids_(&eos_ids),
      detokenizer_(tokenizer, sampling.skip_special_tokens, prompt_tail, kept_special),
      stops_(std::move(stops)),
      thinking_(std::move(thinking)) {
  if (thinking_ && thinking_->harmony)
    thinking_->open = thinking_->harmony->section() == HarmonyReader::Section::thought;
  if (thinking_ && !thinking_->prefix.empty()) {
    prefix_ = thinking_->prefix;
    thinking_.reset();
  }
  in_label_ = thinks() && !thinking_->label.empty();
  begins_anywhere_ = thinking_ && tokenizer.is_special(thinking_->begin);
  if (thinking_ && thinking_->calls) watch_.emplace(*thinking_->calls, thinking_->tools);
}

AnswerPart OutputProcessor::take(Output&& output) {
  CHECK(!finished_, "an answer that is finished cannot get more outputs");
  AnswerPart part{.index = output.index, .text = std::exchange(prefix_, {})};
  for (std::size_t i = 0; i < output.token_ids.size() && !part.finish; ++i) {
    const TokenId id = output.token_ids[i];
    take_token(id, i < output.logprobs.size() ? &output.logprobs[i] : nullptr, part);
    if (!is_stop_token(output, i) && !toggle_reasoning(id, part)) {
      reasoning_tokens_ += thinks();
      add_text(detokenizer_.push(id), part);
    }
    settle_hidden(part);
  }
  if (output.finished && !part.finish) end(output, part);
  if (part.finish && watch_) part.reasoning += watch_->finish();
  part.kv_transfer = std::move(output.kv_transfer);
  if (thinking_ && !thinking_->shown) part.reasoning.clear();
  finished_ = part.finish.has_value();
  return part;
}

void OutputProcessor::take_token(TokenId id, TokenLogprobs* logprobs, AnswerPart& part) {
  ++tokens_;
  AnswerPart& to = thinks() && !thinking_->shown ? hidden_ : part;
  to.token_ids.push_back(id);
  if (!logprobs) return;
  to.logprobs.push_back(std::move(*logprobs));
  to.thought_logprobs += thinks() && thinking_->shown;
}

// Called when it may be decided whether the tokens in hidden_ belong to a call. If not, drops them.
void OutputProcessor::settle_hidden(AnswerPart& part) {
  if (hidden_.token_ids.empty() || (watch_ && watch_->holds())) return;
  if (called_) part.append(std::move(hidden_));
  hidden_ = {};
}

// If the token begins or ends the reasoning, switches and returns true. Such a token is not text.
bool OutputProcessor::toggle_reasoning(TokenId id, AnswerPart& part) {
  if (!thinking_) return false;
  if (thinking_->text) return false;
  if (thinking_->harmony) {
    const bool marks = thinking_->harmony->marks(id);
    if (marks) switch_message(id, part);
    return marks;
  }
  const bool begins = id == thinking_->begin && (at_text_start_ || begins_anywhere_);
  // The end token is only recognized within reasoning, at the start of the text, or after a call that has
  // ended the reasoning.
  const bool ends = id == thinking_->end && (thinking_->open || at_text_start_ || called_);
  if (!begins && !ends) return false;
  add_text(detokenizer_.finish(), part);
  settle_label(part);
  put(stops_.finish(), part);
  if (watch_) part.reasoning += watch_->finish();
  thinking_->open = begins;
  in_label_ = begins && !thinking_->label.empty();
  at_text_start_ = begins;
  return true;
}

// Ends a message. whole: whether its text is complete.
void OutputProcessor::close_message(AnswerPart& part, bool whole) {
  add_text(detokenizer_.finish(), part);
  settle_label(part);
  if (thinking_ && thinking_->text && !part.finish) add_split(thinking_->text->finish(), part);
  if (part.finish) return;
  put(stops_.finish(), part);
  if (whole && calls() && !has_arguments_) part.text += "{}";
}

void OutputProcessor::switch_message(TokenId id, AnswerPart& part) {
  using Section = HarmonyReader::Section;
  HarmonyReader& reader = *thinking_->harmony;
  if (reader.section() != Section::header) {
    close_message(part, true);
    if (part.finish) return;
    if (calls()) part.text += "<|call|>";
  }
  reader.take(id);
  thinking_->open = reader.section() == Section::thought;
  has_arguments_ = false;
  if (calls()) part.text += fmt::format("<|start|>functions.{}<|message|>", reader.function());
}

// Returns whether this token has ended the answer, so that it does not belong to the text.
bool OutputProcessor::is_stop_token(const Output& output, std::size_t position) const {
  if (output.finished != FinishReason::stop || position + 1 != output.token_ids.size()) return false;
  if (sampling_->include_stop_str_in_output) return false;
  const TokenId id = output.token_ids[position];
  return output.stop_token == id || std::ranges::find(*eos_ids_, id) != eos_ids_->end();
}

void OutputProcessor::add_text(std::string_view piece, AnswerPart& part) {
  if (thinking_ && thinking_->text) return add_split(thinking_->text->push(piece), part);
  if (in_label_) return add_thought(piece, part);
  add_to_target(piece, part);
}

// Adds text at the beginning of the reasoning, without the label.
void OutputProcessor::add_thought(std::string_view piece, AnswerPart& part) {
  label_ += piece;
  const std::string_view label = thinking_->label;
  if (label_.size() < label.size() && label.starts_with(label_)) return;
  if (label_.starts_with(label)) label_.erase(0, label.size());
  settle_label(part);
}

// Ends the search for the label. Text that was held back because it could be the label is added.
void OutputProcessor::settle_label(AnswerPart& part) {
  in_label_ = false;
  const std::string held = std::exchange(label_, {});
  if (!held.empty()) add_to_target(held, part);
}

void OutputProcessor::add_split(const ThoughtSplitter::Step& step, AnswerPart& part) {
  if (!step.thought.empty()) {
    thinking_->open = true;
    add_to_target(step.thought, part);
  }
  if (part.finish) return;
  if (thinking_->open && !thinking_->text->thinks()) {
    put(stops_.finish(), part);
    thinking_->open = false;
  }
  add_to_target(step.text, part);
}

void OutputProcessor::add_to_target(std::string_view piece, AnswerPart& part) {
  const bool blank = piece.find_first_not_of(" \n\r\t") == std::string_view::npos;
  at_text_start_ = at_text_start_ && blank;
  has_arguments_ = has_arguments_ || !blank;
  // Stop strings do not apply before min_tokens.
  if (sampling_->stop.empty() || tokens_ <= sampling_->min_tokens) return put(piece, part);
  StopSplitter::Step step = stops_.push(piece);
  put(step.text, part);
  if (!step.stop) return;
  part.finish = FinishReason::stop;
  part.stop_reason = sampling_->stop[*step.stop];
}

// Appends text to the reasoning or to the content. If the text contains a tool call that ends the reasoning,
// the call becomes content.
void OutputProcessor::put(std::string_view text, AnswerPart& part) {
  if (!thinks() || !watch_) {
    (thinks() ? part.reasoning : part.text) += text;
    return;
  }
  if (!watch_->holds()) thoughts_before_call_ = std::max(reasoning_tokens_ - 1, 0);
  const CallWatch::Step step = watch_->push(text);
  part.reasoning += step.thought;
  if (!step.ended) return;
  part.text += step.text;
  thinking_->open = false;
  called_ = true;
  reasoning_tokens_ = thoughts_before_call_;
}

void OutputProcessor::end(const Output& output, AnswerPart& part) {
  close_message(part, output.finished == FinishReason::stop);
  if (part.finish) return;
  part.finish = output.finished;
  if (output.stop_token) part.stop_reason = *output.stop_token;
}

}  // namespace octavo::openai
