#include "fleet/proxy/router.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "fleet/observe/cache_subscriber.h"
#include "fleet/peers/peer_sync.h"
#include "fleet/proxy/admin.h"
#include "fleet/proxy/discovery.h"
#include "fleet/proxy/dispatcher.h"
#include "fleet/proxy/fan_out.h"
#include "fleet/proxy/forwarding.h"
#include "fleet/proxy/monitor.h"
#include "fleet/proxy/prompt_tokens.h"
#include "fleet/proxy/relay.h"
#include "fleet/proxy/warm_start.h"
#include "http/async_client.h"
#include "openai/api_key.h"
#include "openai/errors.h"
#include "serve/page.h"

namespace octavo::fleet {
namespace {

Result<> check_pools(const RouterOptions& options) {
  if (!options.disaggregated) {
    if (!options.prefill_urls.empty()) return invalid("prefill", "needs pd-disaggregation");
    if (!options.decode_urls.empty()) return invalid("decode", "needs pd-disaggregation");
    return {};
  }
  if (!options.worker_urls.empty())
    return invalid("worker-urls", "prefill and decode name the workers with pd-disaggregation");
  const auto discovered = [&](Role role) {
    return std::ranges::any_of(options.discovered, [role](const DiscoveredWorkers& workers) {
      return !workers.role || workers.role == role;
    });
  };
  if (options.prefill_urls.empty() && !discovered(Role::prefill))
    return invalid("prefill", "at least one is needed with pd-disaggregation");
  if (options.decode_urls.empty() && !discovered(Role::decode))
    return invalid("decode", "at least one is needed with pd-disaggregation");
  return {};
}

std::vector<std::string> all_keys(const RouterOptions& options) {
  std::vector<std::string> keys = options.api_keys;
  for (const TenantOptions& tenant : options.tenants)
    keys.insert(keys.end(), tenant.keys.begin(), tenant.keys.end());
  return keys;
}

// What is the operator's alone: tenants neither see nor change the fleet.
bool is_operators(std::string_view path) {
  return path == "/workers" || path.starts_with("/workers/") || path == "/metrics" || path == "/get_loads" ||
         path == "/kv_index";
}

http::Response limited(const Tenant::Answer& answer) {
  http::Response response = openai::error_response(429, answer.message);
  response.headers.set("Retry-After", std::to_string(answer.retry_after_s));
  return response;
}

http::Response no_websocket() {
  http::Response response = openai::error_response(
      426, "octavo route passes on no WebSocket connections: use HTTP, or connect to a worker itself");
  response.headers.add("Upgrade", "HTTP/1.1");
  return response;
}

// Null: there are none.
Result<std::unique_ptr<PeerSync>> join_peers(Dispatcher& dispatcher, const PeerOptions& options) {
  if (options.endpoint.empty() && options.peers.empty()) return nullptr;
  TRY(auto peers,
      PeerSync::start(options, {.changed_loads = [&](bool all) { return dispatcher.changed_loads(all); },
                                .heard = [&](const LoadMessage& told) { dispatcher.peer_told(told); },
                                .gone = [&](PeerId peer) { dispatcher.peer_gone(peer); },
                                .malformed = [&] { dispatcher.metrics().peer_told(false); },
                                .peers_changed = [&](int now) { dispatcher.metrics().peers(now); }}));
  dispatcher.watch_loads([sync = peers.get()] { sync->changed(); });
  return peers;
}

}  // namespace

struct Router::State {
  State(std::unique_ptr<Dispatcher> d, std::unique_ptr<PeerSync> p, std::optional<PromptTokens> t,
        std::shared_ptr<SSL_CTX> tls, const RouterOptions& options)
      : dispatcher(std::move(d)),
        peers(std::move(p)),
        tokens(std::move(t)),
        keys(all_keys(options)),
        page(options.page),
        tenants(options.tenants),
        client(std::make_unique<http::AsyncClient>(
            http::AsyncClientOptions{.threads = options.http.threads, .tls = std::move(tls)})),
        monitor(*dispatcher, client->next_loop()),
        warm_start(*dispatcher, options.warm_from),
        subscriber(
            dispatcher->fleet(),
            [this](const Member& member, std::span<const CacheEvent> events, const CachePosition& position) {
              dispatcher->cache_changed(member, events, position);
            },
            std::ref(warm_start)),
        discovery(*dispatcher, options.discovered, options.disaggregated),
        retries(options.retry.budget),
        context{*dispatcher, monitor, tokens ? &*tokens : nullptr, retries, stored} {}
  ~State() {
    server.reset();  // no new requests,
    client.reset();  // then nothing under way, and only then what those refer to
  }

  void handle(std::shared_ptr<http::Exchange> exchange);

  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<PeerSync> peers;  // null: this router is alone
  const std::optional<PromptTokens> tokens;
  const ApiKeys keys;
  const bool page;
  Tenants tenants;
  std::unique_ptr<http::AsyncClient> client;
  Monitor monitor;
  WarmStart warm_start;
  CacheSubscriber subscriber;
  Discovery discovery;
  RetryBudget retries;
  StoredResponses stored;
  const RouteContext context;
  std::unique_ptr<http::Server> server;
};

void Router::State::handle(std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  const bool asks_page = page && request.path == "/" && (request.method == "GET" || request.method == "HEAD");
  if (auto refusal = unauthorized(keys, request))
    return exchange->respond(asks_page ? login_page() : *std::move(refusal));
  if (asks_page) return exchange->respond(fleet_page());
  Tenant* tenant = tenants.find(request.headers.find("Authorization").value_or(""));
  if (tenant && (is_operators(request.path) || means_all_workers(request)))
    return exchange->respond(openai::error_response(403, "this route is for the router's operator"));
  if (auto answer = admin_answer(*dispatcher, monitor, request)) {
    if (request.path == "/metrics") answer->body += tenants.metrics();
    return exchange->respond(*std::move(answer));
  }
  if (asks_for_websocket(request)) return exchange->respond(no_websocket());
  Tenant::Answer admitted = tenant ? tenant->admit(now_us()) : Tenant::Answer();
  if (admitted.retry_after_s > 0) return exchange->respond(limited(admitted));
  if (!dispatcher->admit())
    return exchange->respond(openai::error_response(
        429, fmt::format("at most {} requests at a time", dispatcher->options().max_concurrent_requests)));
  http::ClientLoop& loop = client->loop_of(*exchange);
  if (means_all_workers(request))
    return fan_out(context, loop, std::move(exchange), [this] { dispatcher->leave(); });
  Forwarding::start(context, loop, std::move(exchange), std::move(admitted.share));
}

Result<std::unique_ptr<Router>> Router::start(RouterOptions options) {
  TRY_VOID(check_pools(options));
  TRY(auto dispatcher, Dispatcher::make(options));
  for (const auto& [role, field, urls] : {std::tuple(Role::prefill, "prefill", options.prefill_urls),
                                          std::tuple(Role::decode, "decode", options.decode_urls)})
    for (const std::string& url : urls) {
      auto endpoint = endpoint_of_url(url);
      if (!endpoint) return invalid(field, "{}", endpoint.error().message);
      endpoint->role = role;
      TRY_VOID(dispatcher->add(*std::move(endpoint)));
    }
  const std::size_t workers = options.worker_urls.size();
  if (!options.kv_events.empty() && options.kv_events.size() != workers)
    return invalid("kv-events", "must be one for each of the {} worker-urls, got {}", workers,
                   options.kv_events.size());
  for (std::size_t i = 0; i < workers; ++i) {
    auto endpoint = endpoint_of_url(options.worker_urls[i]);
    if (!endpoint) return invalid("worker-urls", "{}", endpoint.error().message);
    if (!options.kv_events.empty()) TRY_VOID(read_kv_events(options.kv_events[i], "kv-events", *endpoint));
    TRY_VOID(dispatcher->add(*std::move(endpoint)));
  }
  std::optional<PromptTokens> tokens;
  if (options.tokenizer) {
    TRY(tokens, PromptTokens::make(options.tokenizer));
  }
  TRY(auto tls, http::client_tls_context(options.worker_tls));
  TRY(auto peers, join_peers(*dispatcher, options.peers));
  auto state = std::make_unique<State>(std::move(dispatcher), std::move(peers), std::move(tokens),
                                       std::move(tls), options);
  options.http.refusal = [](int status, const std::string& message) {
    return openai::error_response(status, message);
  };
  options.http.admit = [state = state.get()](const http::Request& request) {
    return unauthorized(state->keys, request);
  };
  state->monitor.start();
  const auto handle = [state = state.get()](std::shared_ptr<http::Exchange> exchange) {
    state->handle(std::move(exchange));
  };
  TRY(state->server, http::Server::start(std::move(options.http), handle, *state->client));
  return std::unique_ptr<Router>(new Router(std::move(state)));
}

Router::Router(std::unique_ptr<State> state) : state_(std::move(state)) {}
Router::~Router() = default;

std::uint16_t Router::port() const { return state_->server->port(); }
std::string Router::address() const { return state_->server->address(); }
void Router::stop(int grace_ms) { state_->server->stop(grace_ms); }

}  // namespace octavo::fleet
