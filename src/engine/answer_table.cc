#include "engine/answer_table.h"

#include <utility>

namespace octavo {
namespace {

Output output_for(const Answer& answer) {
  Output output;
  output.id = answer.accepted->id;
  output.index = answer.index;
  output.cached_tokens = answer.cached_tokens;
  return output;
}

}  // namespace

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
  if (answer.times.first_token_us == 0) {
    answer.times.first_token_us = now_us;
    counters_.prompt_tokens += static_cast<std::int64_t>(answer.accepted->request.prompt.size());
    counters_.prompt_tokens_cached += answer.cached_tokens;
  }
  answer.times.last_token_us = now_us;

  Output news = output_for(answer);
  news.token_ids.push_back(token.id);
  if (token.logprobs) news.logprobs.push_back(*token.logprobs);
  news.prompt_logprobs = std::exchange(answer.prompt_logprobs, {});

  std::optional<Finish> finish = answer.finish.after(output);
  if (answer.grammar_waits) {
    answer.grammar_waits = token.id != *answer.accepted->request.grammar_after;
  } else if (answer.matcher && !finish) {
    if (!answer.matcher->accept(token.id)) {
      fail(index, "the grammar cannot follow the text beyond this token", now_us);
      return true;
    }
    if (answer.matcher->is_terminated()) finish.emplace();  // also under ignore_eos: nothing may follow
  }
  if (!finish) {
    answer.accepted->sink->deliver(std::move(news));
    return false;
  }
  news.stop_token = finish->stop_token;
  end(index, std::move(news), finish->reason, now_us);
  return true;
}

void AnswerTable::fail(AnswerIndex index, std::string_view why, std::int64_t now_us) {
  Output output = output_for(*answers_[index]);
  output.error = why;
  end(index, std::move(output), FinishReason::error, now_us);
}

void AnswerTable::abort(AnswerIndex index, std::int64_t now_us) {
  end(index, output_for(*answers_[index]), FinishReason::abort, now_us);
}

void AnswerTable::end(AnswerIndex index, Output output, FinishReason reason, std::int64_t now_us) {
  const std::unique_ptr<Answer> answer = std::move(answers_[index]);
  unused_.push_back(index);
  output.finished = reason;
  output.times = answer->times;
  output.times.arrived_us = answer->accepted->arrived_us;
  output.times.last_token_us = now_us;
  answer->accepted->sink->deliver(std::move(output));
  if (--answer->accepted->unfinished == 0) inbox_.finished(answer->accepted->id);
}

}  // namespace octavo
