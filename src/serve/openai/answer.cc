#include "serve/openai/answer.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace octavo::openai {

void AnswerPart::append(AnswerPart&& next) {
  text += next.text;
  token_ids.insert(token_ids.end(), next.token_ids.begin(), next.token_ids.end());
  std::ranges::move(next.logprobs, std::back_inserter(logprobs));
  if (!next.finish) return;
  finish = next.finish;
  stop_reason = std::move(next.stop_reason);
}

Answer::Answer(const Tokenizer& tokenizer, const SamplingParams& sampling,
               const std::vector<TokenId>& eos_ids, StopSplitter stops, std::span<const TokenId> prompt_tail)
    : sampling_(&sampling),
      eos_ids_(&eos_ids),
      detokenizer_(tokenizer, sampling.skip_special_tokens, prompt_tail),
      stops_(std::move(stops)) {}

AnswerPart Answer::take(Output&& output) {
  CHECK(!finished_, "an answer that is finished gets no more outputs");
  AnswerPart part{.index = output.index};
  for (std::size_t i = 0; i < output.token_ids.size() && !part.finish; ++i) {
    const TokenId id = output.token_ids[i];
    ++tokens_;
    part.token_ids.push_back(id);
    if (i < output.logprobs.size()) part.logprobs.push_back(std::move(output.logprobs[i]));
    if (!silent(output, i)) add_text(detokenizer_.push(id), part);
  }
  if (output.finished && !part.finish) end(output, part);
  finished_ = part.finish.has_value();
  return part;
}

// The token that ended the text is not part of it.
bool Answer::silent(const Output& output, std::size_t position) const {
  if (output.finished != FinishReason::stop || position + 1 != output.token_ids.size()) return false;
  if (sampling_->include_stop_str_in_output) return false;
  const TokenId id = output.token_ids[position];
  return output.stop_token == id || std::ranges::find(*eos_ids_, id) != eos_ids_->end();
}

void Answer::add_text(std::string_view piece, AnswerPart& part) {
  // Before min_tokens no stop string is looked for.
  if (sampling_->stop.empty() || tokens_ <= sampling_->min_tokens) {
    part.text += piece;
    return;
  }
  StopSplitter::Step step = stops_.push(piece);
  part.text += step.text;
  if (!step.stop) return;
  part.finish = FinishReason::stop;
  part.stop_reason = sampling_->stop[*step.stop];
}

void Answer::end(const Output& output, AnswerPart& part) {
  add_text(detokenizer_.finish(), part);
  if (part.finish) return;
  part.text += stops_.finish();
  part.finish = output.finished;
  if (output.stop_token) part.stop_reason = *output.stop_token;
}

}  // namespace octavo::openai
