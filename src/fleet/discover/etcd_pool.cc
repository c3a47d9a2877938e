#include "fleet/discover/etcd_pool.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/discover/etcd_call.h"
#include "fleet/discover/worker_record.h"

namespace octavo::fleet {
namespace {

constexpr int kTurnMs = 50;
constexpr int kGlanceMs = 100;  // interval at which a watch checks whether the thread must stop
// etcd sends a progress notification every ten minutes, so a connection without data for this time is
// broken.
constexpr std::int64_t kSilenceUs = 1'500'000'000;
constexpr std::size_t kLineBytesMax = 16 << 20;
constexpr std::size_t kSaidMax = 200;

}  // namespace

EtcdPool::EtcdPool(EtcdOptions options, Endpoints endpoints)
    : options_(std::move(options)),
      endpoints_(std::move(endpoints)),
      mirror_(options_.prefix),
      follower_({.source = "etcd, " + options_.prefix, .turn_ms = kTurnMs}, [this] { return once(); }) {}

Result<> EtcdPool::once() {
  TRY(http::Client client, etcd_connect(options_.url));
  TRY(const std::string answer, etcd_call(client, "/v3/kv/range", mirror_.range()));
  TRY_VOID(mirror_.listed(answer));
  tell();
  return watch(client);
}

Result<> EtcdPool::watch(http::Client& client) {
  TRY(const http::Response head,
      client.open("POST", "/v3/watch", mirror_.watch(), {{"Content-Type", "application/json"}}));
  if (head.status != 200) return failure(ErrorCode::io, "the watch returned HTTP status {}", head.status);
  std::string unread;
  for (std::int64_t heard_us = now_us(); now_us() - heard_us < kSilenceUs;) {
    if (follower_.stopped()) return {};
    TRY(const std::optional<std::string> piece, client.read_for(kGlanceMs));
    if (!piece) return failure(ErrorCode::io, "the watch has ended");
    if (piece->empty()) continue;
    heard_us = now_us();
    unread += *piece;
    if (unread.size() > kLineBytesMax)
      return failure(ErrorCode::io, "an event has more than {} bytes", kLineBytesMax);
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
      TRY(const bool changed, mirror_.line(std::string_view(unread).substr(0, end)));
      unread.erase(0, end + 1);
      if (changed) tell();
    }
  }
  return failure(ErrorCode::io, "the watch sent nothing for too long");
}

void EtcdPool::tell() {
  std::vector<Endpoint> endpoints;
  for (const auto& [key, value] : mirror_.values()) {
    if (auto endpoint = read_worker(value)) {
      endpoints.push_back(*std::move(endpoint));
    } else {
      log_warning("etcd, {}: {}: {}", quoted_text(key), quoted_text(value.substr(0, kSaidMax)),
                  endpoint.error().message);
    }
  }
  endpoints_(std::move(endpoints));
}

}  // namespace octavo::fleet
