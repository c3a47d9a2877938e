// Spans of OpenTelemetry, and the request body that exports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace octavo {

// The trace and parent span of a request, from the W3C header `traceparent`.
struct TraceContext {
  std::string trace_id;     // 32 hexadecimal digits
  std::string parent_span;  // 16 hexadecimal digits; "": the span is the first of its trace
  bool sampled = true;      // the caller records the trace
};

// nullopt: the header is invalid, so the request begins a new trace.
std::optional<TraceContext> parse_traceparent(std::string_view header);
std::string traceparent(const TraceContext& context);

enum class SpanKind : std::uint8_t { server = 2, client = 3 };  // numeric values are OTLP's

using SpanValue = std::variant<std::string, std::int64_t, double>;

struct Span {
  std::optional<TraceContext> context = {};  // nullopt: the span begins a new trace
  std::string id = {};                       // 16 hexadecimal digits; "": a new id
  std::string name = {};
  SpanKind kind = SpanKind::server;
  std::vector<std::pair<std::string, SpanValue>> attributes = {};
  std::int64_t begun_us = 0, ended_us = 0;  // on the clock of now_us()
};

std::string new_trace_id();
std::string new_span_id();

// The body of an OTLP export over HTTP, as JSON. us_since_1970: offset from now_us() to Unix time.
std::string otlp_body(const std::vector<Span>& spans, std::string_view service_name,
                      std::int64_t us_since_1970);

}  // namespace octavo
