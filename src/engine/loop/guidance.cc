#include "engine/loop/guidance.h"

#include "base/clock.h"

namespace octavo {

bool Guidance::mask_is_ready(SequenceId sequence, Answer& answer) {
  GuidedText* const rule = answer.rule();
  if (answer.mask_under_way || !rule) return !answer.mask_under_way;
  if (rule->ready()) return true;
  const std::int64_t began = now_ns();
  const bool filled = rule->try_fill();
  counters_.nanoseconds += now_ns() - began;
  ++counters_.filled;
  if (filled) return true;
  ++counters_.deferred;
  ++under_way_;
  answer.mask_under_way = true;
  scheduler_.park(sequence);
  worker_.post({sequence, answer.guided});
  return false;
}

bool Guidance::follow_draft(GuidedText& text, TokenId draft_token, std::span<std::int32_t> mask) {
  grammar::Matcher& rule = text.matcher();
  if (!rule.try_accept(draft_token).value_or(false)) return false;
  const std::int64_t began = now_ns();
  const std::optional<Result<>> filled = rule.is_terminated() ? std::nullopt : rule.try_fill_mask(mask);
  counters_.nanoseconds += now_ns() - began;
  if (!filled || !*filled) {
    rule.rollback(1);
    return false;
  }
  ++counters_.filled;
  return true;
}

const Sequence* Guidance::take_back(SequenceId sequence) {
  --under_way_;
  const Sequence* parked = scheduler_.find(sequence);
  if (parked != nullptr) answers_[parked->spec.tag].mask_under_way = false;
  return parked;
}

}  // namespace octavo
