#include "fleet/pick/decision_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "fleet/pick/choice_answer.h"

namespace octavo::fleet {

DecisionTrace::DecisionTrace(std::shared_ptr<Tracer> tracer, StepTimer& times, std::string_view gateway)
    : tracer_(std::move(tracer)), times_(times) {
  if (!tracer_) return;
  gateway_ = parse_traceparent(gateway);
  span_.begun_us = now_us();
}

void DecisionTrace::begin(const http::Request& request) {
  if (!tracer_) return;
  auto context = gateway_ ? gateway_ : parse_traceparent(request.headers.find("traceparent").value_or(""));
  if (context && !context->sampled) {
    tracer_ = nullptr;
    return;
  }
  span_.context = context ? *std::move(context) : TraceContext{.trace_id = new_trace_id(), .parent_span = ""};
  span_.id = new_span_id();
  span_.name = "pick";
  span_.attributes = {{"http.request.method", request.method}, {"url.path", request.path}};
}

std::string DecisionTrace::traceparent() const {
  return tracer_ ? octavo::traceparent({span_.context->trace_id, span_.id, true}) : "";
}

void DecisionTrace::took(std::string_view point, const StepName& step, std::int64_t ns) {
  times_.took(point, step, ns);
  if (!tracer_) return;
  std::string name = fmt::format("octavo.pick.{}.{}.seconds", point, step.name);
  const auto known = std::ranges::find(plugin_ns_, name, &std::pair<std::string, std::int64_t>::first);
  if (known == plugin_ns_.end())
    plugin_ns_.emplace_back(std::move(name), ns);
  else
    known->second += ns;
}

void DecisionTrace::end(const std::string& model, const Choice& choice) {
  if (!tracer_) return;
  span_.attributes.emplace_back("octavo.pick.endpoint", choice.endpoint->name);
  span_.attributes.emplace_back("octavo.pick.split", std::string(split_of(choice)));
  span_.attributes.emplace_back("octavo.pick.new_tokens", choice.new_tokens);
  for (const auto& [name, value] : {std::pair("profile", choice.profile),
                                    {"prefiller", choice.prefiller},
                                    {"encoders", choice.encoders},
                                    {"kv_source", choice.kv_source}})
    if (!value.empty()) span_.attributes.emplace_back(fmt::format("octavo.pick.{}", name), value);
  record(model);
}

void DecisionTrace::end(const std::string& model, const Refusal& refusal) {
  if (!tracer_) return;
  span_.attributes.emplace_back("http.response.status_code", std::int64_t{refusal.status});
  span_.attributes.emplace_back("error.message", refusal.message);
  record(model);
}

void DecisionTrace::record(const std::string& model) {
  if (!model.empty()) span_.attributes.emplace_back("gen_ai.request.model", model);
  for (auto& [name, ns] : plugin_ns_)
    span_.attributes.emplace_back(std::move(name), static_cast<double>(ns) * 1e-9);
  span_.ended_us = now_us();
  std::exchange(tracer_, nullptr)->record(std::move(span_));
}

}  // namespace octavo::fleet
