#include "fleet/route/warm_start.h"

#include "base/log.h"
#include "http/client.h"
#include "http/target.h"

namespace octavo::fleet {
namespace {

constexpr int kTimeoutMs = 5'000;
constexpr std::uint64_t kBytesMax = 128 << 20;

}  // namespace

CachePosition WarmStart::operator()(const Member& member) {
  const std::string& worker = member.endpoint->name;
  if (!peer_ || !requested_.insert(worker).second) return {};
  const auto dump = fetch(worker);
  if (!dump) {
    log_warning("cannot copy the cache index from {}: {}",
                http::host_header(peer_->host, peer_->port, peer_->tls), dump.error().message);
    peer_.reset();
    return {};
  }
  if (!*dump || !balancer_.restore(member, **dump)) return {};
  metrics_.restored(member.endpoint->label(), (*dump)->blocks.size());
  log_info("copied the cache index of {}: {} blocks", member.endpoint->label(), (*dump)->blocks.size());
  return (*dump)->position;
}

// Returns nullopt if the peer does not know the worker.
Result<std::optional<HeldDump>> WarmStart::fetch(const std::string& worker) const {
  TRY(auto client, http::Client::connect({.host = peer_->host,
                                          .port = peer_->port,
                                          .tls = peer_->tls,
                                          .timeout_ms = kTimeoutMs,
                                          .body_bytes_max = kBytesMax}));
  http::Headers headers;
  if (const auto& keys = options_.api_keys; !keys.empty())
    headers.add("Authorization", "Bearer " + keys.front());
  const std::string target = "/kv_index?worker=" + http::percent_encoded(worker);
  TRY(const http::Response answer, client.request("GET", target, {}, std::move(headers)));
  if (answer.status == 404) return std::nullopt;
  if (answer.status != 200) return failure(ErrorCode::io, "the router returned status {}", answer.status);
  return read_held_dump(answer.body);
}

}  // namespace octavo::fleet
