// OpenTelemetry spans, and their export request as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace octavo {

// Trace and parent span of a request, from the header `traceparent` (W3C).
struct TraceContext {
  std::string trace_id;     // 32 hexadecimal digits
  // 16 hexadecimal digits; "": the next span is the first one of the trace
  std::string parent_span;
  bool sampled = true;  // whether the caller records the trace
};

// Returns nullopt if the header is invalid. The request then begins a new trace.
std::optional<TraceContext> parse_traceparent(std::string_view header);
std::string traceparent(const TraceContext& context);

// the values are those of OTLP
enum class SpanKind : std::uint8_t { internal = 1, server = 2, client = 3 };

using SpanValue = std::variant<std::string, std::int64_t, double>;

struct Span {
  std::optional<TraceContext> context = {};  // nullopt: the span begins a trace
  std::string id = {};                       // 16 hexadecimal digits; "": the exporter chooses
  std::string name = {};
  SpanKind kind = SpanKind::server;
  std::vector<std::pair<std::string, SpanValue>> attributes = {};
  std::int64_t begun_us = 0, ended_us = 0;  // times of now_us()
};

std::string new_trace_id();
std::string new_span_id();

// us_since_1970: number to add to now_us() to get Unix time in microseconds.
std::string otlp_body(const std::vector<Span>& spans, std::string_view service_name,
                      std::int64_t us_since_1970);

}  // namespace octavo
