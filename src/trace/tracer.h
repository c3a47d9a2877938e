// Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "http/url.h"
#include "trace/span.h"

namespace octavo {

class Tracer {
 public:
  // endpoint: http://HOST:PORT/v1/traces. Error: an invalid URL.
  static Result<std::shared_ptr<Tracer>> start(const std::string& endpoint, std::string service_name);
  ~Tracer();  // sends the remaining spans

  // Safe from any thread, never waits. If 2,048 spans are unsent, drops the span; the log reports the number
  // of dropped spans.
  void record(Span span);

 private:
  Tracer(http::Url url, std::string service_name);
  void run();
  Result<> send(const std::vector<Span>& spans) const;

  const http::Url url_;
  const std::string service_name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Span> spans_;
  int dropped_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace octavo
