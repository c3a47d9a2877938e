// The trace span of one decision, with the request, the chosen endpoint and the plugins' times. The span's
// parent is the gateway's span or, if the gateway sends none, the client's.
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
  // If `tracer` is null, no span is recorded. `times` also receives the plugins' times. `gateway` is the
  // traceparent of the gateway's call; "": none.
  DecisionTrace(std::shared_ptr<Tracer> tracer, StepTimer& times, std::string_view gateway);

  // Begins the span. `request` must have its headers. Must be called once.
  void begin(const http::Request& request);
  // Returns the traceparent for the endpoint. Returns "" to keep the request's traceparent.
  std::string traceparent() const;
  // Ends the span. Later calls have no effect.
  void end(const std::string& model, const Choice& choice);
  void end(const std::string& model, const Refusal& refusal);

  std::int64_t now_ns() const override { return times_.now_ns(); }
  void took(std::string_view point, const StepName& step, std::int64_t ns) override;

 private:
  void record(const std::string& model);

  std::shared_ptr<Tracer> tracer_;  // null: no span is recorded
  StepTimer& times_;
  std::optional<TraceContext> gateway_;
  Span span_ = {};
  // attribute name -> time, summed over the profiles
  std::vector<std::pair<std::string, std::int64_t>> plugin_ns_;
};

}  // namespace octavo::fleet
