#include "serve/tracing.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "http/client.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kSpansMax = 2048;  // unsent; OpenTelemetry's default
constexpr std::size_t kBatch = 512;
constexpr auto kInterval = std::chrono::seconds(1);
constexpr int kSendMs = 5000;
constexpr int kServerKind = 2;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

json::object attribute(std::string_view key, json::object value) {
  return {{"key", key}, {"value", std::move(value)}};
}
json::object text(std::string_view key, std::string_view value) {
  return attribute(key, {{"stringValue", value}});
}
// OTLP writes 64-bit integers as strings.
json::object integer(std::string_view key, std::int64_t value) {
  return attribute(key, {{"intValue", std::to_string(value)}});
}
json::object number(std::string_view key, double value) { return attribute(key, {{"doubleValue", value}}); }

double seconds(std::int64_t from_us, std::int64_t to_us) {
  return static_cast<double>(std::max<std::int64_t>(0, to_us - from_us)) * 1e-6;
}

json::array attributes(const AnswerSpan& span) {
  json::array all{text("gen_ai.response.model", span.model),
                  text("gen_ai.request.id", span.request_id),
                  integer("gen_ai.request.max_tokens", span.max_tokens),
                  number("gen_ai.request.temperature", span.temperature),
                  number("gen_ai.request.top_p", span.top_p),
                  integer("gen_ai.request.n", span.n),
                  integer("gen_ai.usage.prompt_tokens", span.prompt_tokens),
                  integer("gen_ai.usage.completion_tokens", span.generation_tokens),
                  integer("gen_ai.usage.num_sequences", span.n),
                  text("gen_ai.response.finish_reason", span.finish_reason),
                  number("gen_ai.latency.e2e", seconds(span.arrived_us, span.finished_us))};
  const RequestTimes& t = span.times;
  if (t.scheduled_us == 0) return all;
  all.push_back(number("gen_ai.latency.time_in_queue", seconds(t.arrived_us, t.scheduled_us)));
  if (t.first_token_us == 0) return all;
  all.push_back(number("gen_ai.latency.time_to_first_token", seconds(span.arrived_us, t.first_token_us)));
  all.push_back(number("gen_ai.latency.time_in_model_prefill", seconds(t.scheduled_us, t.first_token_us)));
  all.push_back(number("gen_ai.latency.time_in_model_decode", seconds(t.first_token_us, t.last_token_us)));
  all.push_back(number("gen_ai.latency.time_in_model_inference", seconds(t.scheduled_us, t.last_token_us)));
  return all;
}

std::string new_id() {
  std::uint64_t id = 0;
  while (id == 0) id = secret_seed();
  return fmt::format("{:016x}", id);
}

json::object span_json(const AnswerSpan& span, std::int64_t us_since_1970) {
  const auto nanoseconds = [&](std::int64_t us) { return std::to_string((us + us_since_1970) * 1000); };
  json::object out{{"traceId", span.context ? span.context->trace_id : new_id() + new_id()},
                   {"spanId", new_id()},
                   {"name", "llm_request"},
                   {"kind", kServerKind},
                   {"startTimeUnixNano", nanoseconds(span.arrived_us)},
                   {"endTimeUnixNano", nanoseconds(span.finished_us)},
                   {"attributes", attributes(span)}};
  if (span.context) out["parentSpanId"] = span.context->parent_span;
  return out;
}

}  // namespace

// "00-" trace "-" parent "-" flags; later versions may append fields.
std::optional<TraceContext> parse_traceparent(std::string_view header) {
  constexpr std::size_t kSize = 55;
  if (header.size() < kSize || header[2] != '-' || header[35] != '-' || header[52] != '-')
    return std::nullopt;
  const std::string_view version = header.substr(0, 2), trace = header.substr(3, 32),
                         parent = header.substr(36, 16), flags = header.substr(53, 2);
  if (!is_hex(version) || version == "ff" || !is_hex(trace) || !is_hex(parent) || !is_hex(flags))
    return std::nullopt;
  if (is_zero(trace) || is_zero(parent)) return std::nullopt;
  if (version == "00" ? header.size() != kSize : header.size() > kSize && header[kSize] != '-')
    return std::nullopt;
  const char last = flags[1];
  const int digit = last <= '9' ? last - '0' : last - 'a' + 10;
  return TraceContext{
      .trace_id = std::string(trace), .parent_span = std::string(parent), .sampled = digit % 2 == 1};
}

std::string otlp_body(const std::vector<AnswerSpan>& spans, std::string_view service_name,
                      std::int64_t us_since_1970) {
  json::array all;
  for (const AnswerSpan& span : spans) all.push_back(span_json(span, us_since_1970));
  const json::object scope{{"scope", {{"name", "octavo"}}}, {"spans", std::move(all)}};
  const json::object resource{{"attributes", json::array{text("service.name", service_name)}}};
  return json::serialize(
      json::object{{"resourceSpans",
                    json::array{json::object{{"resource", resource}, {"scopeSpans", json::array{scope}}}}}});
}

Result<std::shared_ptr<Tracer>> Tracer::start(const std::string& endpoint, std::string service_name) {
  auto url = http::parse_url(endpoint);
  if (!url) return invalid("otlp-traces-endpoint", "{}", url.error().message);
  if (url->target == "/")
    return invalid("otlp-traces-endpoint", "must have a path, as http://HOST:4318/v1/traces, got {}",
                   endpoint);
  return std::shared_ptr<Tracer>(new Tracer(*std::move(url), std::move(service_name)));
}

Tracer::Tracer(http::Url url, std::string service_name)
    : url_(std::move(url)), service_name_(std::move(service_name)), thread_([this] { run(); }) {}

Tracer::~Tracer() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Tracer::record(AnswerSpan span) {
  if (span.context && !span.context->sampled) return;
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= kSpansMax) {
    ++dropped_;
    return;
  }
  spans_.push_back(std::move(span));
  if (spans_.size() >= kBatch) changed_.notify_one();
}

void Tracer::run() {
  std::unique_lock lock(mutex_);
  for (bool ends = false; !ends;) {
    changed_.wait_for(lock, kInterval, [this] { return ended_ || spans_.size() >= kBatch; });
    ends = ended_;
    const std::vector<AnswerSpan> batch = std::exchange(spans_, {});
    const int dropped = std::exchange(dropped_, 0);
    lock.unlock();
    if (dropped > 0) log_warning("{} spans were dropped: the collector does not keep up", dropped);
    if (!batch.empty())
      if (const auto sent = send(batch); !sent)
        log_warning("{} spans were not sent to {}:{}: {}", batch.size(), url_.host, url_.port,
                    sent.error().message);
    lock.lock();
  }
}

Result<> Tracer::send(const std::vector<AnswerSpan>& spans) const {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t offset =
      std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count() - now_us();
  TRY(http::Client client,
      http::Client::connect({.host = url_.host, .port = url_.port, .tls = url_.tls, .timeout_ms = kSendMs}));
  TRY(const http::Response response, client.post_json(url_.target, otlp_body(spans, service_name_, offset)));
  if (response.status / 100 != 2) return failure(ErrorCode::io, "it answered {}", response.status);
  return {};
}

}  // namespace octavo
