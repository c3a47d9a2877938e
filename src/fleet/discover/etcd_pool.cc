#include "fleet/discover/etcd_pool.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/discover/etcd_call.h"
#include "fleet/discover/worker_record.h"

namespace octavo::fleet {
namespace {

constexpr int kIntervalMs = 50;
constexpr int kGlanceMs = 100;  // interval at which a watch checks whether the thread must stop
// etcd sends a progress notification every ten minutes. A connection without data for 25 minutes is broken.
constexpr std::int64_t kSilenceUs = 1'500'000'000;
constexpr std::size_t kLineBytesMax = 16 << 20;
constexpr std::size_t kQuotedMax = 200;

}  // namespace

EtcdPool::EtcdPool(EtcdOptions options, Endpoints endpoints)
    : options_(std::move(options)),
      endpoints_(std::move(endpoints)),
      mirror_(options_.prefix),
      follower_({.source = "etcd, " + options_.prefix, .interval_ms = kIntervalMs},
                [this] { return once(); }) {}

Result<> EtcdPool::once() {
  TRY(http::Client client, etcd_connect(options_.url));
  TRY(const std::string answer, etcd_call(client, "/v3/kv/range", mirror_.range()));
  TRY_VOID(mirror_.listed(answer));
  notify();
  return watch(client);
}

Result<> EtcdPool::watch(http::Client& client) {
  TRY(const http::Response head,
      client.open("POST", "/v3/watch", mirror_.watch(), {{"Content-Type", "application/json"}}));
  if (head.status != 200) return failure(ErrorCode::io, "the watch returned HTTP status {}", head.status);
  std::string unread;
  for (std::int64_t received_us = now_us(); now_us() - received_us < kSilenceUs;) {
    if (follower_.stopped()) return {};
    TRY(const std::optional<std::string> piece, client.read_for(kGlanceMs));
    if (!piece) return failure(ErrorCode::io, "the watch has ended");
    if (piece->empty()) continue;
    received_us = now_us();
    unread += *piece;
    if (unread.size() > kLineBytesMax)
      return failure(ErrorCode::io, "an event has more than {} bytes", kLineBytesMax);
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
      TRY(const bool changed, mirror_.line(std::string_view(unread).substr(0, end)));
      unread.erase(0, end + 1);
      if (changed) notify();
    }
  }
  return failure(ErrorCode::io, "the watch sent nothing for too long");
}

void EtcdPool::notify() {
  std::vector<Endpoint> endpoints;
  for (const auto& [key, value] : mirror_.values()) {
    if (auto endpoint = read_worker(value)) {
      endpoints.push_back(*std::move(endpoint));
    } else {
      log_warning("etcd, {}: {}: {}", quoted_text(key), quoted_text(value.substr(0, kQuotedMax)),
                  endpoint.error().message);
    }
  }
  endpoints_(std::move(endpoints));
}

}  // namespace octavo::fleet
