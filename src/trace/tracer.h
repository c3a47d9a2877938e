// Exports spans to an OpenTelemetry collector with OTLP over HTTP (JSON or protobuf) or gRPC.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "http/url.h"
#include "trace/span.h"

namespace octavo {

class Tracer {
 public:
  // endpoint: http://HOST:PORT/v1/traces, or grpc://HOST:PORT. protocol: grpc, http/protobuf or http/json;
  // "": grpc for grpc://, otherwise http/json. Returns an error for an invalid URL, an unknown protocol, or
  // gRPC with TLS.
  static Result<std::shared_ptr<Tracer>> start(const std::string& endpoint, std::string service_name,
                                               std::string_view protocol = {});
  // The destructor exports the remaining spans.

  // Thread-safe; does not wait. Drops the span if 2,048 spans are waiting, and logs the number of dropped
  // spans.
  void record(Span span);

 private:
  enum class Protocol : std::uint8_t { json, protobuf, grpc };

  Tracer(http::Url url, Protocol protocol, std::string service_name);
  static Result<Protocol> read_protocol(std::string_view name, bool grpc_url);
  void run(const std::stop_token& stop);
  Result<> send(const std::vector<Span>& spans) const;

  const http::Url url_;
  const Protocol protocol_;
  const std::string service_name_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Span> spans_;
  int dropped_ = 0;
  std::jthread thread_;
};

}  // namespace octavo
