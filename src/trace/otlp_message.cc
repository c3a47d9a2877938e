#include "trace/otlp_message.h"

#include <bit>

namespace octavo {
namespace {

// Writes protobuf fields. The numbers are from opentelemetry/proto/trace/v1/trace.proto.
class ProtoWriter {
 public:
  ProtoWriter& bytes(unsigned field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    out_.append(value);
    return *this;
  }
  ProtoWriter& varint(unsigned field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
    return *this;
  }
  ProtoWriter& fixed64(unsigned field, std::uint64_t value) {
    tag(field, 1);
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(value >> shift & 255);
    return *this;
  }
  const std::string& message() const { return out_; }

 private:
  void tag(unsigned field, unsigned type) { varint(std::uint64_t{field} << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) out_ += static_cast<char>(value | 128);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

std::string from_hex(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(value(digits[i]) << 4 | value(digits[i + 1]));
  return bytes;
}

std::string attribute(std::string_view key, const SpanValue& value) {
  ProtoWriter any;
  if (const auto* text = std::get_if<std::string>(&value))
    any.bytes(1, *text);
  else if (const auto* integer = std::get_if<std::int64_t>(&value))
    any.varint(3, static_cast<std::uint64_t>(*integer));
  else
    any.fixed64(4, std::bit_cast<std::uint64_t>(std::get<double>(value)));
  return ProtoWriter().bytes(1, key).bytes(2, any.message()).message();
}

std::string span_message(const Span& span, std::int64_t us_since_1970) {
  const auto nanoseconds = [&](std::int64_t us) {
    return static_cast<std::uint64_t>((us + us_since_1970) * 1000);
  };
  ProtoWriter out;
  out.bytes(1, from_hex(span.context ? span.context->trace_id : new_trace_id()))
      .bytes(2, from_hex(span.id.empty() ? new_span_id() : span.id));
  if (span.context && !span.context->parent_span.empty()) out.bytes(4, from_hex(span.context->parent_span));
  out.bytes(5, span.name)
      .varint(6, static_cast<std::uint64_t>(span.kind))
      .fixed64(7, nanoseconds(span.begun_us))
      .fixed64(8, nanoseconds(span.ended_us));
  for (const auto& [key, value] : span.attributes) out.bytes(9, attribute(key, value));
  return out.message();
}

}  // namespace

std::string otlp_message(const std::vector<Span>& spans, std::string_view service_name,
                         std::int64_t us_since_1970) {
  ProtoWriter scope;
  scope.bytes(1, ProtoWriter().bytes(1, "octavo").message());
  for (const Span& span : spans) scope.bytes(2, span_message(span, us_since_1970));
  ProtoWriter resource;
  resource.bytes(1, attribute("service.name", std::string(service_name)));
  const std::string all = ProtoWriter().bytes(1, resource.message()).bytes(2, scope.message()).message();
  return ProtoWriter().bytes(1, all).message();
}

}  // namespace octavo
