#include "fleet/relay/request_trace.h"

#include <utility>

#include "base/clock.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kHeader = "traceparent";

std::optional<TraceContext> context_of(const http::Request& request) {
  return parse_traceparent(request.headers.find(kHeader).value_or(""));
}

std::shared_ptr<Tracer> if_sampled(std::shared_ptr<Tracer> tracer, const http::Request& request) {
  const auto context = context_of(request);
  return context && !context->sampled ? nullptr : std::move(tracer);
}

}  // namespace

RequestTrace::RequestTrace(std::shared_ptr<Tracer> tracer, std::string name, const http::Request& request)
    : tracer_(if_sampled(std::move(tracer), request)),
      name_(std::move(name)),
      method_(request.method),
      path_(request.path),
      begun_us_(now_us()),
      id_(tracer_ ? new_span_id() : std::string()) {
  if (!tracer_) return;
  auto context = context_of(request);
  context_ = context ? *std::move(context) : TraceContext{.trace_id = new_trace_id(), .parent_span = ""};
}

RequestTrace::Call RequestTrace::begin(http::Headers& headers) const {
  if (!tracer_) return {};
  Call call{.id = new_span_id(), .begun_us = now_us()};
  headers.set(std::string(kHeader), traceparent({context_.trace_id, call.id, true}));
  return call;
}

void RequestTrace::end(const Call& call, std::string name, const std::string& url, int status) const {
  if (call.id.empty()) return;
  Span span{.context = TraceContext{context_.trace_id, id_, true},
            .id = call.id,
            .name = std::move(name),
            .kind = SpanKind::client,
            .attributes = {{"http.request.method", method_}, {"url.full", url + path_}},
            .begun_us = call.begun_us,
            .ended_us = now_us()};
  if (status > 0) span.attributes.emplace_back("http.response.status_code", std::int64_t{status});
  tracer_->record(std::move(span));
}

void RequestTrace::end(int status, const std::string& model) const {
  if (!tracer_) return;
  Span span{.context = context_,
            .id = id_,
            .name = name_,
            .attributes = {{"http.request.method", method_}, {"url.path", path_}},
            .begun_us = begun_us_,
            .ended_us = now_us()};
  if (status > 0) span.attributes.emplace_back("http.response.status_code", std::int64_t{status});
  if (!model.empty()) span.attributes.emplace_back("gen_ai.request.model", model);
  tracer_->record(std::move(span));
}

}  // namespace octavo::fleet
