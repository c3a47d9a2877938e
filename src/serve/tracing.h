// A span for each answer, sent to an OpenTelemetry collector: OTLP over HTTP, as JSON.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "http/url.h"
#include "request/request.h"

namespace octavo {

// Trace and parent of a span, from the W3C header `traceparent`.
struct TraceContext {
  std::string trace_id;     // 32 hexadecimal digits
  std::string parent_span;  // 16 of them; "": the span is the first of its trace
  bool sampled = true;      // somebody records the trace
};

// nullopt: no valid header; the request begins a new trace.
std::optional<TraceContext> parse_traceparent(std::string_view header);

// A finished answer.
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
  std::int64_t arrived_us = 0, finished_us = 0;  // of now_us()
};

// The body of an OTLP export. us_since_1970: offset from now_us() to Unix time.
std::string otlp_body(const std::vector<AnswerSpan>& spans, std::string_view service_name,
                      std::int64_t us_since_1970);

class Tracer {
 public:
  // endpoint: http://HOST:PORT/v1/traces. Error: an invalid URL.
  static Result<std::shared_ptr<Tracer>> start(const std::string& endpoint, std::string service_name);
  ~Tracer();  // sends what is left

  // Any thread, never waits. Beyond 2,048 unsent spans new ones are dropped, and the log reports their
  // number.
  void record(AnswerSpan span);

 private:
  Tracer(http::Url url, std::string service_name);
  void run();
  Result<> send(const std::vector<AnswerSpan>& spans) const;

  const http::Url url_;
  const std::string service_name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AnswerSpan> spans_;
  int dropped_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
