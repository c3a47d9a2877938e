#include "serve/tracing.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

double seconds(std::int64_t from_us, std::int64_t to_us) {
  return static_cast<double>(std::max<std::int64_t>(0, to_us - from_us)) * 1e-6;
}

}  // namespace

Span to_span(const AnswerSpan& answer) {
  Span span{.context = answer.context,
            .name = "llm_request",
            .begun_us = answer.arrived_us,
            .ended_us = answer.finished_us};
  const auto add = [&](std::string key, SpanValue value) {
    span.attributes.emplace_back(std::move(key), std::move(value));
  };
  const auto integer = [](int value) { return std::int64_t{value}; };
  add("gen_ai.response.model", answer.model);
  add("gen_ai.request.id", answer.request_id);
  add("gen_ai.request.max_tokens", integer(answer.max_tokens));
  add("gen_ai.request.temperature", answer.temperature);
  add("gen_ai.request.top_p", answer.top_p);
  add("gen_ai.request.n", integer(answer.n));
  add("gen_ai.usage.prompt_tokens", integer(answer.prompt_tokens));
  add("gen_ai.usage.completion_tokens", integer(answer.generation_tokens));
  add("gen_ai.usage.num_sequences", integer(answer.n));
  add("gen_ai.response.finish_reason", std::string(answer.finish_reason));
  add("gen_ai.latency.e2e", seconds(answer.arrived_us, answer.finished_us));
  for (std::size_t i = 0; i < kCostUnits; ++i)
    if (answer.cost.units[i] != 0)
      add("octavo.cost." + std::string(kCostFields[i].name), answer.cost.units[i]);
  const RequestTimes& t = answer.times;
  if (t.scheduled_us == 0) return span;
  add("gen_ai.latency.time_in_queue", seconds(t.arrived_us, t.scheduled_us));
  if (t.first_token_us == 0) return span;
  add("gen_ai.latency.time_to_first_token", seconds(answer.arrived_us, t.first_token_us));
  add("gen_ai.latency.time_in_model_prefill", seconds(t.scheduled_us, t.first_token_us));
  add("gen_ai.latency.time_in_model_decode", seconds(t.first_token_us, t.last_token_us));
  add("gen_ai.latency.time_in_model_inference", seconds(t.scheduled_us, t.last_token_us));
  return span;
}

void record_answer(Tracer& tracer, const AnswerSpan& answer, bool with_phases) {
  Span span = to_span(answer);
  if (!with_phases) return tracer.record(std::move(span));
  if (!span.context) span.context = TraceContext{.trace_id = new_trace_id(), .parent_span = {}};
  span.id = new_span_id();
  const TraceContext below{
      .trace_id = span.context->trace_id, .parent_span = span.id, .sampled = span.context->sampled};
  tracer.record(std::move(span));
  // A phase ends when the next phase begins or the answer ends.
  const RequestTimes& t = answer.times;
  const auto add = [&](std::string name, std::int64_t begun_us, std::int64_t ended_us) {
    if (begun_us == 0) return;
    tracer.record({.context = below,
                   .name = std::move(name),
                   .kind = SpanKind::internal,
                   .begun_us = begun_us,
                   .ended_us = ended_us > 0 ? ended_us : answer.finished_us});
  };
  add("queue", t.arrived_us, t.scheduled_us);
  add("prefill", t.scheduled_us, t.first_token_us);
  add("decode", t.first_token_us, t.last_token_us);
}

}  // namespace octavo
