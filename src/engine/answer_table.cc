#include "engine/answer_table.h"

#include <utility>

namespace octavo {

AnswerIndex AnswerTable::open(std::unique_ptr<Answer> answer) {
  if (unused_.empty()) {
    unused_.push_back(answers_.size());
    answers_.emplace_back();
  }
  const AnswerIndex index = unused_.back();
  unused_.pop_back();
  answers_[index] = std::move(answer);
  return index;
}

bool AnswerTable::deliver(AnswerIndex index, const SampledToken& token, std::span<const TokenId> output,
                          std::int64_t now_us) {
  Answer& answer = *answers_[index];
  ++counters_.generation_tokens;
  answer.sampling.append(token.id);
  if (answer.times.first_token_us == 0) begin(answer, now_us);
  answer.times.last_token_us = now_us;

  if (answer.news.token_ids.empty()) fresh_.push_back(index);
  answer.news.token_ids.push_back(token.id);
  if (token.logprobs) answer.news.logprobs.push_back(*token.logprobs);
  if (!answer.prompt_logprobs.empty())
    answer.news.prompt_logprobs = std::exchange(answer.prompt_logprobs, {});

  const bool under_grammar = answer.rule() != nullptr;
  std::optional<Finish> finish = answer.finish.after(output);
  if (!finish && !answer.take(token.id)) {
    fail(index, {ErrorCode::internal, "the grammar cannot follow the text beyond this token", {}}, now_us);
    return true;
  }
  // Also under ignore_eos: nothing may follow.
  if (!finish && under_grammar && answer.guided->matcher().is_terminated()) finish.emplace();
  if (!finish) return false;
  answer.news.stop_token = finish->stop_token;
  end(index, finish->reason, now_us);
  return true;
}

void AnswerTable::deliver_pooled(AnswerIndex index, std::span<const float> pooled, std::int64_t now_us) {
  Answer& answer = *answers_[index];
  begin(answer, now_us);
  answer.news.pooled.assign(pooled.begin(), pooled.end());
  end(index, FinishReason::stop, now_us);
}

void AnswerTable::begin(Answer& answer, std::int64_t now_us) {
  answer.times.first_token_us = now_us;
  counters_.prompt_tokens += static_cast<std::int64_t>(answer.accepted->request.prompt.size());
  counters_.prompt_tokens_cached += answer.cached_tokens;
}

void AnswerTable::send(Answer& answer) const {
  answer.news.id = answer.accepted->id;
  answer.news.engine = engine_;
  answer.news.index = answer.so_far.index;
  answer.news.cached_tokens = answer.cached_tokens;
  answer.accepted->sink->deliver(std::exchange(answer.news, {}));
}

void AnswerTable::hand_over() {
  for (const AnswerIndex index : fresh_) {
    Answer* answer = answers_[index].get();
    if (answer == nullptr) continue;
    send(*answer);
  }
  fresh_.clear();
}

void AnswerTable::fail(AnswerIndex index, const Error& error, std::int64_t now_us) {
  answers_[index]->news.error = error;
  end(index, FinishReason::error, now_us);
}

void AnswerTable::end(AnswerIndex index, FinishReason reason, std::int64_t now_us) {
  const std::unique_ptr<Answer> answer = std::move(answers_[index]);
  unused_.push_back(index);
  answer->news.finished = reason;
  answer->news.times = answer->times;
  answer->news.times.arrived_us = answer->accepted->arrived_us;
  answer->news.times.last_token_us = now_us;
  const bool whole = reason != FinishReason::abort && reason != FinishReason::error;
  if (whole && answer->accepted->unfinished == 1) answer->news.kv_transfer = offer_(*answer->accepted);
  send(*answer);
  if (--answer->accepted->unfinished == 0) inbox_.finished(answer->accepted->id);
}

}  // namespace octavo
