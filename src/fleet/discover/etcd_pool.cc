#include "fleet/discover/etcd_pool.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/discover/event_addresses.h"
#include "http/async_client.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr int kTurnMs = 50;
constexpr int kTimeoutMs = 10'000;
constexpr int kGlanceMs = 100;  // how soon a watch sees that it is to stop
// etcd reports its progress every ten minutes: a connection that is silent for longer is dead.
constexpr std::int64_t kSilenceUs = 1'500'000'000;
constexpr std::uint64_t kBodyBytesMax = 64 << 20;
constexpr std::size_t kLineBytesMax = 16 << 20;
constexpr std::size_t kSaidMax = 200;

Result<Role> role_of(const json::value* role) {
  if (role == nullptr) return Role::both;
  if (role->is_string() && role->get_string() == "prefill") return Role::prefill;
  if (role->is_string() && role->get_string() == "decode") return Role::decode;
  return invalid("role", "must be \"prefill\" or \"decode\"");
}

// Its URL.
Result<std::string> read_worker(const json::object& worker, Endpoint& endpoint) {
  const json::value* url = worker.if_contains("url");
  if (url == nullptr || !url->is_string()) return invalid("url", "must be in an object, as text");
  TRY(endpoint.role, role_of(worker.if_contains("role")));
  if (const json::value* models = worker.if_contains("models")) {
    if (!models->is_array()) return invalid("models", "must be a list of names");
    for (const json::value& model : models->get_array()) {
      if (!model.is_string()) return invalid("models", "must be a list of names");
      endpoint.models.emplace_back(model.get_string());
    }
  }
  if (const json::value* events = worker.if_contains("kv_events")) {
    const std::string_view text =
        events->is_string() ? std::string_view(events->get_string()) : std::string_view();
    TRY_VOID(read_event_addresses(text, "kv_events", endpoint));
  }
  return std::string(url->get_string());
}

}  // namespace

Result<Endpoint> endpoint_of_value(std::string_view value) {
  Endpoint endpoint;
  std::string url(value);
  if (value.starts_with('{')) {
    boost::system::error_code error;
    const json::value parsed = json::parse(value, error);
    if (error || !parsed.is_object()) return invalid("", "must be a URL or a JSON object");
    TRY(url, read_worker(parsed.get_object(), endpoint));
  }
  TRY(const http::Address address, http::parse_base_url(url));
  endpoint.name = address.text();
  endpoint.url = address.url();
  return endpoint;
}

EtcdPool::EtcdPool(EtcdOptions options, Endpoints endpoints)
    : options_(std::move(options)),
      endpoints_(std::move(endpoints)),
      mirror_(options_.prefix),
      follower_("etcd, " + options_.prefix, kTurnMs, [this] { return once(); }) {}

Result<> EtcdPool::once() {
  TRY(http::Client client, http::Client::connect({.host = options_.url.host,
                                                  .port = options_.url.port,
                                                  .tls = options_.url.tls,
                                                  .timeout_ms = kTimeoutMs,
                                                  .body_bytes_max = kBodyBytesMax}));
  TRY(const http::Response answer, client.post_json("/v3/kv/range", mirror_.range()));
  if (answer.status != 200)
    return failure(ErrorCode::io, "HTTP {}: {}", answer.status, quoted_text(answer.body.substr(0, kSaidMax)));
  TRY_VOID(mirror_.listed(answer.body));
  tell();
  return watch(client);
}

Result<> EtcdPool::watch(http::Client& client) {
  TRY(const http::Response head,
      client.open("POST", "/v3/watch", mirror_.watch(), {{"Content-Type", "application/json"}}));
  if (head.status != 200) return failure(ErrorCode::io, "HTTP {} to a watch", head.status);
  std::string unread;
  for (std::int64_t heard_us = now_us(); now_us() - heard_us < kSilenceUs;) {
    if (follower_.stopped()) return {};
    TRY(const std::optional<std::string> piece, client.read_for(kGlanceMs));
    if (!piece) return failure(ErrorCode::io, "the watch has ended");
    if (piece->empty()) continue;
    heard_us = now_us();
    unread += *piece;
    if (unread.size() > kLineBytesMax)
      return failure(ErrorCode::io, "an event of more than {} bytes", kLineBytesMax);
    for (std::size_t end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
      TRY(const bool changed, mirror_.line(std::string_view(unread).substr(0, end)));
      unread.erase(0, end + 1);
      if (changed) tell();
    }
  }
  return failure(ErrorCode::io, "nothing was heard for too long");
}

void EtcdPool::tell() {
  std::vector<Endpoint> endpoints;
  for (const auto& [key, value] : mirror_.values()) {
    if (auto endpoint = endpoint_of_value(value)) {
      endpoints.push_back(*std::move(endpoint));
    } else {
      log_warning("etcd, {}: {}: {}", quoted_text(key), quoted_text(value.substr(0, kSaidMax)),
                  endpoint.error().message);
    }
  }
  endpoints_(std::move(endpoints));
}

}  // namespace octavo::fleet
