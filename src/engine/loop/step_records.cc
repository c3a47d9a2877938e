#include "engine/loop/step_records.h"

#include <algorithm>

#include "timing/step_timing.h"

namespace octavo {
namespace {

constexpr double kNewest = 0.2;  // weight of the last step in the running mean

}  // namespace

StepRecord StepRecords::of_plan(const StepPlan& plan, AnswerTable& answers) {
  StepRecord record{.number = static_cast<std::int64_t>(plan.step),
                    .sequences = static_cast<int>(plan.sequences.size())};
  StepWork work;
  for (const PlannedSequence& s : plan.sequences) {
    const auto prompt = static_cast<int>(answers[s.tag].accepted->request.prompt.size());
    record.prompt_tokens += std::clamp(prompt - s.first, 0, s.count);
    work.add(s.first, s.end() - s.first);
  }
  record.answer_tokens = plan.tokens - record.prompt_tokens;
  record.kv_tokens = work.kv_tokens;
  record.pairs = work.pairs;
  return record;
}

StepRecord StepRecords::computed(StepNumber step, StepRecord record, std::int64_t began_us,
                                 std::int64_t now_us) {
  record.began_us = std::max(began_us, computed_us_);
  record.microseconds = now_us - record.began_us;
  recent_[step % recent_.size()] = record;
  computed_us_ = now_us;
  if (figures_) add_work(record);
  if (record.prompt_tokens <= record.answer_tokens) return record;
  const double seconds =
      static_cast<double>(record.microseconds) * 1e-6 / (record.prompt_tokens + record.answer_tokens);
  prompt_token_seconds_ = prompt_token_seconds_ == 0
                              ? seconds
                              : prompt_token_seconds_ + kNewest * (seconds - prompt_token_seconds_);
  return record;
}

void StepRecords::add_work(const StepRecord& record) {
  const double tokens = record.prompt_tokens + record.answer_tokens;
  work_.operations += tokens * figures_->operations_per_token +
                      static_cast<double>(record.pairs) * figures_->operations_per_pair;
  work_.read_bytes +=
      figures_->weight_bytes + static_cast<double>(record.kv_tokens) * figures_->kv_bytes_per_token;
  work_.written_bytes += tokens * figures_->kv_bytes_per_token;
}

}  // namespace octavo
