// Records an OpenTelemetry span for each answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "request/request.h"
#include "trace/tracer.h"

namespace octavo {

struct AnswerSpan {
  std::optional<TraceContext> context{};
  std::string request_id;
  std::string model;
  int max_tokens = 0;
  double temperature = 0, top_p = 0;
  int n = 1;
  int prompt_tokens = 0, generation_tokens = 0;
  std::string_view finish_reason;
  RequestTimes times;
  AnswerCost cost{};
  std::int64_t arrived_us = 0, finished_us = 0;  // times on the clock of now_us()
};

// Returns a span with vLLM's attributes.
Span to_span(const AnswerSpan& answer);

// Records the answer's span. If `with_phases` is set, also records child spans for the phases that have
// begun: queue, prefill and decode.
void record_answer(Tracer& tracer, const AnswerSpan& answer, bool with_phases);

}  // namespace octavo
