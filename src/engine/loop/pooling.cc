#include "engine/loop/pooling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace octavo {

Result<std::span<const float>> Pooling::compute(const StepPlan& plan) {
  starts_.assign(1, 0);
  heads_.clear();
  std::int32_t end = 0;
  for (const PlannedSequence& s : plan.sequences) {
    end += s.count;
    while (is_of_tokens(task_of(s)) && starts_.back() + 1 < end) starts_.push_back(starts_.back() + 1);
    starts_.push_back(end);
    heads_.resize(starts_.size() - 1, static_cast<std::uint8_t>(info_.tasks.head_for(task_of(s))));
  }
  return executor_.pool(starts_, heads_);
}

void Pooling::commit(const StepPlan& plan, std::span<const float> numbers, std::int64_t now_us) {
  std::size_t begin = 0;
  for (const PlannedSequence& s : plan.sequences) {
    const Task task = task_of(s);
    CHECK(s.samples && (s.first == 0 || !is_of_tokens(task)), "tokens [{}, {}) of a prompt that is pooled",
          s.first, s.end());
    const int size = info_.tasks.size_for(task) * (is_of_tokens(task) ? s.count : 1);
    const std::span<const float> own = numbers.subspan(begin, static_cast<std::size_t>(size));
    begin += own.size();
    if (std::ranges::all_of(own, [](float x) { return std::isfinite(x); })) {
      answers_.deliver_pooled(s.tag, own, now_us);
      continue;
    }
    scheduler_.finish(s.sequence);  // must come before collect(), which lets other requests share the blocks
    answers_.fail(s.tag, {ErrorCode::internal, "the model computed numbers that are not finite", {}}, now_us);
  }
  scheduler_.collect(plan.step);
  for (const PlannedSequence& s : plan.sequences) scheduler_.finish(s.sequence);
}

}  // namespace octavo
