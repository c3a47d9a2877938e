#include "trace/tracer.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "http/client.h"

namespace octavo {
namespace {

constexpr std::size_t kSpansMax = 2048;  // maximum number of unsent spans; OpenTelemetry's default
constexpr std::size_t kBatch = 512;
constexpr auto kInterval = std::chrono::seconds(1);
constexpr int kSendMs = 5000;

}  // namespace

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

void Tracer::run() {
  std::unique_lock lock(mutex_);
  for (bool ends = false; !ends;) {
    changed_.wait_for(lock, kInterval, [this] { return ended_ || spans_.size() >= kBatch; });
    ends = ended_;
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
  TRY(http::Client client,
      http::Client::connect({.host = url_.host, .port = url_.port, .tls = url_.tls, .timeout_ms = kSendMs}));
  TRY(const http::Response response, client.post_json(url_.target, otlp_body(spans, service_name_, offset)));
  if (response.status / 100 != 2) return failure(ErrorCode::io, "it answered {}", response.status);
  return {};
}

}  // namespace octavo
