#include "trace/tracer.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "grpc/client.h"
#include "http/client.h"
#include "trace/otlp_message.h"

namespace octavo {
namespace {

constexpr std::size_t kSpansMax = 2048;  // maximum number of spans that wait for export; OpenTelemetry's
                                         // default
constexpr std::size_t kBatch = 512;
constexpr auto kInterval = std::chrono::seconds(1);
constexpr int kSendMs = 5000;
constexpr const char* kExport = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

}  // namespace

Result<Tracer::Protocol> Tracer::read_protocol(std::string_view name, bool grpc_url) {
  if (name.empty()) return grpc_url ? Protocol::grpc : Protocol::json;
  if (name == "grpc") return Protocol::grpc;
  if (grpc_url)
    return invalid("otel-exporter-otlp-traces-protocol", "is {}, but must be grpc for an endpoint grpc://",
                   name);
  if (name == "http/protobuf") return Protocol::protobuf;
  if (name == "http/json") return Protocol::json;
  return invalid("otel-exporter-otlp-traces-protocol", "must be grpc, http/protobuf or http/json, got {}",
                 name);
}

Result<std::shared_ptr<Tracer>> Tracer::start(const std::string& endpoint, std::string service_name,
                                              std::string_view protocol) {
  constexpr std::string_view kField = "otlp-traces-endpoint", kGrpc = "grpc://";
  const bool grpc_url = endpoint.starts_with(kGrpc);
  TRY(const Protocol chosen, read_protocol(protocol, grpc_url));
  auto url = http::parse_url(grpc_url ? endpoint.substr(kGrpc.size()) : endpoint);
  if (!url) return invalid(kField, "{}", url.error().message);
  if (chosen == Protocol::grpc && url->tls)
    return invalid(kField,
                   "gRPC with TLS is not supported, got {}: use https://HOST:4318/v1/traces, or grpc:// to a "
                   "collector on this host",
                   endpoint);
  if (chosen != Protocol::grpc && url->target == "/")
    return invalid(kField, "must have a path, as http://HOST:4318/v1/traces, or be grpc://HOST:4317, got {}",
                   endpoint);
  return std::shared_ptr<Tracer>(new Tracer(*std::move(url), chosen, std::move(service_name)));
}

Tracer::Tracer(http::Url url, Protocol protocol, std::string service_name)
    : url_(std::move(url)),
      protocol_(protocol),
      service_name_(std::move(service_name)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Tracer::record(Span span) {
  if (span.context && !span.context->sampled) return;
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= kSpansMax) {
    ++dropped_;
    return;
  }
  spans_.push_back(std::move(span));
  if (spans_.size() >= kBatch) changed_.notify_one();
}

void Tracer::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (bool ends = false; !ends;) {
    changed_.wait_for(lock, stop, kInterval, [this] { return spans_.size() >= kBatch; });
    ends = stop.stop_requested();
    const std::vector<Span> batch = std::exchange(spans_, {});
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

Result<> Tracer::send(const std::vector<Span>& spans) const {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t offset =
      std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count() - now_us();
  if (protocol_ == Protocol::grpc) {
    TRY(const std::string reply,
        grpc::call({.host = url_.host, .port = url_.port, .path = kExport, .timeout_ms = kSendMs},
                   otlp_message(spans, service_name_, offset)));
    return {};
  }
  TRY(http::Client client,
      http::Client::connect({.host = url_.host, .port = url_.port, .tls = url_.tls, .timeout_ms = kSendMs}));
  const bool json = protocol_ == Protocol::json;
  TRY(const http::Response response,
      client.request(
          "POST", url_.target,
          json ? otlp_body(spans, service_name_, offset) : otlp_message(spans, service_name_, offset),
          {{"Content-Type", json ? "application/json" : "application/x-protobuf"}}));
  if (response.status / 100 != 2) return failure(ErrorCode::io, "it answered {}", response.status);
  return {};
}

}  // namespace octavo
