#include "engine/loop/answer_table.h"

#include <utility>

#include "base/out_of_memory.h"

namespace octavo {

AnswerIndex AnswerTable::open(std::unique_ptr<Answer> answer) {
  if (unused_.empty()) {
    unused_.push_back(answers_.size());
    answers_.emplace_back();
    accounts_.emplace_back();
  }
  const AnswerIndex index = unused_.back();
  unused_.pop_back();
  accounts_[index] = answer->opening_account();
  answers_[index] = std::move(answer);
  return index;
}

template <class Keep>
bool AnswerTable::keep(AnswerIndex index, std::int64_t now_us, Keep&& keep) {
  const Result<> kept = within_memory([&]() -> Result<> {
    keep(*answers_[index]);
    return {};
  });
  if (!kept) fail(index, kept.error(), now_us);
  return kept.has_value();
}

bool AnswerTable::add_prompt_logprobs(AnswerIndex index, TokenLogprobs&& logprobs, std::int64_t now_us) {
  return keep(index, now_us, [&](Answer& answer) { answer.prompt_logprobs.push_back(std::move(logprobs)); });
}

bool AnswerTable::deliver(AnswerIndex index, SampledToken&& token, std::span<const TokenId> output,
                          std::int64_t now_us) {
  Answer& answer = *answers_[index];
  ++counters_.generation_tokens;
  ++accounts_[index].cost[CostUnit::output_tokens];
  if (answer.times.first_token_us == 0) begin(index, now_us);
  answer.times.last_token_us = now_us;
  const bool kept = keep(index, now_us, [&](Answer& a) {
    a.sampling.append(token.id);
    a.thinking.append(token.id);
    if (a.news.token_ids.empty()) fresh_.push_back(index);
    a.news.token_ids.push_back(token.id);
    if (token.logprobs) a.news.logprobs.push_back(*std::move(token.logprobs));
  });
  if (!kept) return true;
  if (!answer.prompt_logprobs.empty())
    answer.news.prompt_logprobs = std::exchange(answer.prompt_logprobs, {});

  const bool under_grammar = answer.rule() != nullptr;
  std::optional<Finish> finish = answer.finish.after(output);
  if (!finish && !answer.take(token.id)) {
    fail(index, {ErrorCode::internal, "the grammar does not allow this token", {}}, now_us);
    return true;
  }
  // Ends the answer even with ignore_eos, because no token may follow the end of the grammar.
  if (!finish && under_grammar && answer.guided->matcher().is_terminated()) finish.emplace();
  if (!finish) return false;
  answer.news.stop_token = finish->stop_token;
  end(index, finish->reason, now_us);
  return true;
}

void AnswerTable::deliver_pooled(AnswerIndex index, std::span<const float> pooled, std::int64_t now_us) {
  Answer& answer = *answers_[index];
  begin(index, now_us);
  answer.news.pooled.assign(pooled.begin(), pooled.end());
  end(index, FinishReason::stop, now_us);
}

void AnswerTable::begin(AnswerIndex index, std::int64_t now_us) {
  Answer& answer = *answers_[index];
  AnswerCost& cost = accounts_[index].cost;
  answer.times.first_token_us = now_us;
  counters_.prompt_tokens += static_cast<std::int64_t>(answer.accepted->request.prompt.size());
  counters_.prompt_tokens_cached += answer.cached_tokens;
  constexpr std::array<CostUnit, kKvSources> kLoaded{CostUnit::prompt_tokens_from_peer,
                                                     CostUnit::prompt_tokens_from_host,
                                                     CostUnit::prompt_tokens_from_disk};
  std::int64_t cached = answer.cached_tokens;
  const auto loaded = std::exchange(answer.accepted->loaded, {});
  for (std::size_t source = 0; source < loaded.size(); ++source) {
    const std::int64_t used = std::min(loaded[source], cached);
    counters_.prompt_tokens_loaded[source] += used;
    if (!answer.continues()) cost[kLoaded[source]] += used;
    cached -= used;
  }
  if (!answer.continues()) cost[CostUnit::prompt_tokens_cached] += cached;
  cost += std::exchange(answer.accepted->shared_cost, {});
}

void AnswerTable::send(Answer& answer, const AnswerCost& cost) const {
  answer.news.id = answer.accepted->id;
  answer.news.engine = engine_;
  answer.news.index = answer.so_far.index;
  answer.news.cached_tokens = answer.cached_tokens;
  answer.news.cost = cost;
  // Each output contains the times, not only the last one, because the server may end the answer itself at a
  // stop string.
  answer.news.times = answer.times;
  answer.news.times.arrived_us = answer.accepted->arrived_us;
  answer.accepted->sink->deliver(std::exchange(answer.news, {}));
}

void AnswerTable::report_progress(AnswerIndex index, int computed) const {
  const Answer& answer = *answers_[index];
  if (computed >= std::ssize(answer.accepted->request.prompt)) return;
  Output output;
  output.id = answer.accepted->id;
  output.engine = engine_;
  output.index = answer.so_far.index;
  output.cached_tokens = answer.cached_tokens;
  output.computed_tokens = computed;
  answer.accepted->sink->deliver(std::move(output));
}

void AnswerTable::hand_over() {
  for (const AnswerIndex index : fresh_) {
    Answer* answer = answers_[index].get();
    if (answer == nullptr) continue;
    send(*answer, accounts_[index].cost);
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
  answer->times.last_token_us = now_us;
  answer->news.preemptions = answer->preemptions;
  AnswerAccount& account = accounts_[index];
  account.blocks.settle(now_us * 1000, account.cost);
  account.cost += std::exchange(answer->accepted->shared_cost, {});
  const bool whole = reason != FinishReason::abort && reason != FinishReason::error;
  answer->news.kv_transfer = offer_(*answer, whole);
  send(*answer, account.cost);
  if (--answer->accepted->unfinished == 0) inbox_.finished(answer->accepted->id);
}

}  // namespace octavo
