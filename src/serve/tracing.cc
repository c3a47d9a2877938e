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

}  // namespace octavo
