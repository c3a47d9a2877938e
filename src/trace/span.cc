#include "trace/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/hash.h"

namespace octavo {
namespace {

namespace json = boost::json;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

// OTLP's JSON writes 64-bit integers as strings.
json::object value_json(const SpanValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return {{"stringValue", *text}};
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return {{"intValue", std::to_string(*integer)}};
  return {{"doubleValue", std::get<double>(value)}};
}

json::object span_json(const Span& span, std::int64_t us_since_1970) {
  const auto nanoseconds = [&](std::int64_t us) { return std::to_string((us + us_since_1970) * 1000); };
  json::array attributes;
  for (const auto& [key, value] : span.attributes)
    attributes.push_back(json::object{{"key", key}, {"value", value_json(value)}});
  json::object out{{"traceId", span.context ? span.context->trace_id : new_trace_id()},
                   {"spanId", span.id.empty() ? new_span_id() : span.id},
                   {"name", span.name},
                   {"kind", static_cast<int>(span.kind)},
                   {"startTimeUnixNano", nanoseconds(span.begun_us)},
                   {"endTimeUnixNano", nanoseconds(span.ended_us)},
                   {"attributes", std::move(attributes)}};
  if (span.context && !span.context->parent_span.empty()) out["parentSpanId"] = span.context->parent_span;
  return out;
}

}  // namespace

// "00-" trace "-" parent "-" flags. Later versions may append fields.
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

std::string traceparent(const TraceContext& context) {
  return fmt::format("00-{}-{}-{:02}", context.trace_id, context.parent_span, context.sampled ? 1 : 0);
}

std::string new_span_id() {
  std::uint64_t id = 0;
  while (id == 0) id = secret_seed();
  return fmt::format("{:016x}", id);
}

std::string new_trace_id() { return new_span_id() + new_span_id(); }

std::string otlp_body(const std::vector<Span>& spans, std::string_view service_name,
                      std::int64_t us_since_1970) {
  json::array all;
  for (const Span& span : spans) all.push_back(span_json(span, us_since_1970));
  const json::object scope{{"scope", {{"name", "octavo"}}}, {"spans", std::move(all)}};
  const json::object service{{"key", "service.name"}, {"value", {{"stringValue", service_name}}}};
  const json::object resource{{"attributes", json::array{service}}};
  return json::serialize(
      json::object{{"resourceSpans",
                    json::array{json::object{{"resource", resource}, {"scopeSpans", json::array{scope}}}}}});
}

}  // namespace octavo
