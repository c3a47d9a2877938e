// The span of one decision: the request, the chosen endpoint and the plugins' times. Its parent is in the
// gateway's trace, otherwise in the client's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/balance/choice.h"
#include "fleet/decide/step_timer.h"
#include "http/message.h"
#include "trace/tracer.h"

namespace octavo::fleet {

class DecisionTrace : public StepTimer {
 public:
  // tracer: null: no span is recorded. times: also receives the plugins' times. gateway: traceparent of the
  // gateway's call; "": none.
  DecisionTrace(std::shared_ptr<Tracer> tracer, StepTimer& times, std::string_view gateway);

  // Begins the span with the request's headers. Call it once.
  void begin(const http::Request& request);
  // Returns the traceparent for the endpoint; "" to keep that of the request.
  std::string traceparent() const;
  // End the span. Only the first call has an effect.
  void end(const std::string& model, const Choice& choice);
  void end(const std::string& model, const Refusal& refusal);

  std::int64_t now_ns() const override { return times_.now_ns(); }
  void took(std::string_view point, const StepName& step, std::int64_t ns) override;

 private:
  void record(const std::string& model);

  std::shared_ptr<Tracer> tracer_;  // null: nothing is recorded
  StepTimer& times_;
  std::optional<TraceContext> gateway_;
  Span span_ = {};
  std::vector<std::pair<std::string, std::int64_t>> plugin_ns_;  // by attribute name, summed over profiles
};

}  // namespace octavo::fleet
