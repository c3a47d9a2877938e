// The functions of Generation that report ended answers: metrics, spans, costs and the access log.
#include <fmt/format.h>

#include <algorithm>

#include "serve/generation.h"

namespace octavo {

void Generation::record_end(int engine, const Run& run, const Choice& choice, FinishReason reason,
                            const RequestTimes& times, std::int64_t at_us) {
  const SamplingParams& sampling = plan_.request.sampling;
  // If the server has found a stop string, the engine reports `abort`. The metrics must count the reason that
  // the client has received.
  reason = choice.reported.value_or(reason);
  service_->metrics.accounts.charge(plan_.account.tenant, choice.cost, all_ended() ? 1 : 0);
  service_->metrics.answer_ended({.engine = engine,
                                  .reason = reason,
                                  .prompt_tokens = run.echoed.tokens,
                                  .cached_tokens = run.cached_tokens,
                                  .generation_tokens = choice.processor.tokens(),
                                  .max_tokens = sampling.max_tokens.value_or(0),
                                  .n = sampling.n,
                                  .preemptions = choice.preemptions,
                                  .times = times,
                                  .finished_us = at_us});
  if (const ObserveOptions& observe = service_->options.observe; observe.tracer)
    record_answer(*observe.tracer, span_of(run, choice, reason, times, at_us), observe.phase_spans);
}

bool Generation::all_ended() const {
  return std::ranges::all_of(runs_,
                             [](const Run& run) { return std::ranges::all_of(run.choices, &Choice::ended); });
}

AnswerCost Generation::cost() const {
  AnswerCost sum;
  for (const Run& run : runs_)
    for (const Choice& choice : run.choices) sum += choice.cost;
  return sum;
}

void Generation::log_end(FinishReason reason, std::int64_t at_us) const {
  if (!plan_.account.cost_id.empty()) service_->metrics.accounts.unread.put(plan_.account.cost_id, cost());
  std::int64_t prompt_tokens = 0;
  for (const Run& run : runs_) prompt_tokens += run.echoed.tokens;
  service_->metrics.accounts.log({.id = plan_.request.request_id,
                                  .tenant = plan_.account.tenant,
                                  .path = plan_.account.path,
                                  .model = plan_.request.model,
                                  .finish = name(runs_.front().choices.front().reported.value_or(reason)),
                                  .prompt_tokens = prompt_tokens,
                                  .answers = static_cast<int>(runs_.size()) * plan_.request.sampling.n,
                                  .seconds = static_cast<double>(at_us - plan_.arrived_us) * 1e-6,
                                  .cost = cost()});
}

void Generation::add_cost_header(http::Response& response) const {
  if (plan_.account.in_header) response.headers.set(std::string(kCostHeader), cost_text(cost()));
}

// Other streams, such as NDJSON, have no comments.
void Generation::add_cost_comment(std::string& out) const {
  if (plan_.account.in_header && plan_.reply->stream_type().starts_with("text/event-stream"))
    out += fmt::format(": {}: {}\n\n", kCostHeader, cost_text(cost()));
}

AnswerSpan Generation::span_of(const Run& run, const Choice& choice, FinishReason reason,
                               const RequestTimes& times, std::int64_t at_us) const {
  const SamplingParams& sampling = plan_.request.sampling;
  return {.context = plan_.trace,
          .request_id = plan_.request.request_id,
          .model = plan_.request.model,
          .max_tokens = sampling.max_tokens.value_or(0),
          .temperature = sampling.temperature,
          .top_p = sampling.top_p,
          .n = sampling.n,
          .prompt_tokens = run.echoed.tokens,
          .generation_tokens = choice.processor.tokens(),
          .finish_reason = name(reason),
          .times = times,
          .cost = choice.cost,
          .arrived_us = plan_.arrived_us,
          .finished_us = at_us};
}

}  // namespace octavo
