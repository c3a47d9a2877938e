#include "engine/loop/state_text.h"

#include <fmt/format.h>

#include <iterator>

namespace octavo {
namespace {

constexpr int kAnswersMax = 256;

std::string answer_text(const Scheduler& scheduler, const Answer& answer) {
  const Accepted& accepted = *answer.accepted;
  std::string text = fmt::format("  request {} answer {}: ", accepted.id, answer.so_far.index);
  const Sequence* sequence = scheduler.find(answer.sequence);
  if (sequence == nullptr)
    return text + fmt::format("deferred (grammar, media, adapter or KV transfer), prompt of {} tokens",
                              accepted.request.prompt.size());
  return text + fmt::format(
                    "{}, {} of {} tokens computed, {} planned, {} of the prompt, {} cached, {} preemptions{}",
                    sequence->state == Sequence::State::running ? "running" : "waiting", sequence->computed,
                    sequence->length(), sequence->planned, sequence->prompt_tokens,
                    sequence->counts.cached_tokens, sequence->counts.preemptions,
                    sequence->parked ? ", waiting for its grammar mask" : "");
}

}  // namespace

std::string plan_text(const StepPlan& plan) {
  std::string text =
      fmt::format("step {}: {} tokens of {} sequences", plan.step, plan.tokens, plan.sequences.size());
  for (const PlannedSequence& s : plan.sequences)
    fmt::format_to(std::back_inserter(text), "{} [{}, {}){}{}", &s == plan.sequences.data() ? ":" : ",",
                   s.first, s.end(), s.drafts.empty() ? "" : fmt::format(" with {} drafts", s.drafts.size()),
                   s.samples ? " samples" : "");
  if (!plan.preempted.empty())
    fmt::format_to(std::back_inserter(text), "; preempted {}", plan.preempted.size());
  return text;
}

std::string state_text(const Scheduler& scheduler, AnswerTable& answers) {
  const SchedulerStats s = scheduler.stats();
  std::string text = fmt::format(
      "{} unfinished answers: {} running, {} waiting, {} deferred; {} KV blocks: {} used, {} cached, {} "
      "empty; {} preemptions so far",
      answers.open_count(), s.running, s.waiting, answers.open_count() - s.running - s.waiting,
      s.blocks_total, s.blocks_used, s.blocks_cached, s.blocks_free, s.preemptions);
  int lines = 0;
  answers.for_all([&](AnswerIndex, const Answer& answer) {
    if (++lines <= kAnswersMax) text += "\n" + answer_text(scheduler, answer);
  });
  if (lines > kAnswersMax) text += fmt::format("\n  and {} more", lines - kAnswersMax);
  return text;
}

}  // namespace octavo
