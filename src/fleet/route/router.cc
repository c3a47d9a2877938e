#include "fleet/route/router.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/quoted_text.h"
#include "batches/service.h"
#include "fleet/observe/cache_subscriber.h"
#include "fleet/peers/peer_sync.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/relay.h"
#include "fleet/relay/start_server.h"
#include "fleet/route/admin.h"
#include "fleet/route/batch_host.h"
#include "fleet/route/fan_out.h"
#include "fleet/route/forwarding.h"
#include "fleet/route/incoming.h"
#include "fleet/route/monitor.h"
#include "fleet/route/prompt_tokens.h"
#include "fleet/route/session_list.h"
#include "fleet/route/warm_start.h"
#include "fleet/route/workers.h"
#include "http/async_client.h"
#include "openai/anthropic_client.h"
#include "openai/api_key.h"
#include "openai/errors.h"
#include "openai/routes.h"
#include "openai/session_path.h"
#include "serve/page.h"

namespace octavo::fleet {
namespace {

Result<> check_pools(const RouterOptions& options) {
  if (!options.pd.enabled) {
    if (!options.pd.prefill_urls.empty()) return invalid("prefill", "needs --pd-disaggregation");
    if (!options.pd.decode_urls.empty()) return invalid("decode", "needs --pd-disaggregation");
    return {};
  }
  if (!options.workers.urls.empty())
    return invalid("worker-urls",
                   "cannot be combined with --pd-disaggregation: give the workers as --prefill and --decode");
  const auto discovered = [&](Role role) {
    return std::ranges::any_of(options.workers.discovered, [role](const DiscoveredWorkers& workers) {
      return !workers.role || workers.role == role;
    });
  };
  if (options.pd.prefill_urls.empty() && !discovered(Role::prefill))
    return invalid("prefill", "must be given at least once with --pd-disaggregation");
  if (options.pd.decode_urls.empty() && !discovered(Role::decode))
    return invalid("decode", "must be given at least once with --pd-disaggregation");
  return {};
}

std::vector<std::string> all_keys(const RouterOptions& options) {
  std::vector<std::string> keys = options.api_keys;
  for (const TenantOptions& tenant : options.tenants)
    keys.insert(keys.end(), tenant.keys.begin(), tenant.keys.end());
  return keys;
}

// Returns whether tenants may use the route. Tenants may use the inference APIs. All other paths, including
// variants such as "/metrics/" and "/engine_metrics", are for the operator, because tenants must not read
// or change the fleet.
bool is_for_tenants(const http::Request& request) {
  constexpr std::array<std::string_view, 2> kPlain{"/ping", "/version"};
  std::string_view path = request.path;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/v1/loads" || means_all_workers(request)) return false;
  return openai::find_route(path) || path.starts_with("/v1/") || path.starts_with("/api/") ||
         std::ranges::find(kPlain, path) != kPlain.end();
}

// Returns whether the route needs no API key. Orchestrators read these routes, and the router answers them
// itself.
bool is_public(const http::Request& request) {
  constexpr std::array<std::string_view, 3> kPublic{"/health", "/liveness", "/readiness"};
  const bool reads = request.method == "GET" || request.method == "HEAD";
  return reads && std::ranges::find(kPublic, request.path) != kPublic.end();
}

// Only the router's operator may import a session, because an imported file decides the content of cached
// prefixes, which other clients may use.
bool is_session_import(const http::Request& request) {
  const openai::Route* route = openai::find_route(request.path);
  return route && route->session && openai::parse_session_path(request.path).action == "import";
}

http::Response limited(const Tenant::Answer& answer, std::string_view path) {
  http::Response response = proxy_error(path, 429, answer.message);
  response.headers.set("Retry-After", std::to_string(answer.retry_after_s));
  return response;
}

// Returns false for the event by which the subscriber itself reports that the engine's blocks are unknown.
bool is_of_engine(const CacheEvent& event) { return event.kind != CacheEvent::Kind::lost; }

http::Response no_websocket() {
  http::Response response = openai::error_response(
      426, "octavo route does not forward WebSocket connections: use HTTP, or connect to a worker directly");
  response.headers.add("Upgrade", "HTTP/1.1");
  return response;
}

Result<std::unique_ptr<Balancer>> make_balancer(const RouterOptions& options, RouteMetrics& metrics) {
  BalancerOptions balancer{.probes = options.health.probes,
                           .breaker = options.health.breaker,
                           .slow_start_us = std::int64_t{1'000'000} * options.slow_start_secs,
                           .learn_capacity = options.queue.size > 0,
                           .released = [&](const Endpoint& worker) { metrics.forget(worker.label()); }};
  const auto add = [&](Role part, std::string_view field, const std::string& own) -> Result<> {
    const std::string& name = own.empty() ? options.policy : own;
    const Policy* policy = find_policy(name);
    if (!policy) return invalid(field, "the policy {} does not exist", quoted_text(name));
    balancer.pools.push_back({part, name, policy->pipeline(options.policy_options)});
    return {};
  };
  if (options.pd.enabled) {
    TRY_VOID(add(Role::prefill, "prefill-policy", options.pd.prefill_policy));
    TRY_VOID(add(Role::decode, "decode-policy", options.pd.decode_policy));
  } else {
    TRY_VOID(add(Role::both, "policy", options.policy));
  }
  return Balancer::make(std::move(balancer));
}

Result<> add_workers(Balancer& balancer, const RouterOptions& options) {
  const std::size_t workers = options.workers.urls.size();
  if (!options.workers.kv_events.empty() && options.workers.kv_events.size() != workers)
    return invalid("kv-events", "must have one entry for each of the {} worker-urls, got {}", workers,
                   options.workers.kv_events.size());
  for (const auto& [role, field, urls] : {std::tuple(Role::prefill, "prefill", &options.pd.prefill_urls),
                                          std::tuple(Role::decode, "decode", &options.pd.decode_urls),
                                          std::tuple(Role::both, "worker-urls", &options.workers.urls)})
    for (std::size_t i = 0; i < urls->size(); ++i) {
      auto endpoint = endpoint_of_url((*urls)[i]);
      if (!endpoint) return invalid(field, "{}", endpoint.error().message);
      endpoint->role = role;
      if (role == Role::prefill && i < options.pd.bootstrap_ports.size())
        endpoint->bootstrap_port = options.pd.bootstrap_ports[i];
      if (role == Role::both && !options.workers.kv_events.empty())
        TRY_VOID(read_kv_events(options.workers.kv_events[i], "kv-events", *endpoint));
      TRY_VOID(balancer.add(*std::move(endpoint)));
    }
  return {};
}

Result<std::unique_ptr<PeerSync>> join_peers(Balancer& balancer, RouteMetrics& metrics,
                                             const PeerOptions& options) {
  if (options.endpoint.empty() && options.peers.empty()) return nullptr;
  TRY(auto peers,
      PeerSync::start(options, {.changed_loads = [&](bool all) { return balancer.changed_loads(all); },
                                .received =
                                    [&](const LoadMessage& message) {
                                      metrics.peer_reported(true);
                                      balancer.peer_reported(message);
                                    },
                                .removed = [&](PeerId peer) { balancer.peer_removed(peer); },
                                .malformed = [&] { metrics.peer_reported(false); },
                                .peers_changed = [&](int now) { metrics.peers(now); }}));
  balancer.watch_loads([sync = peers.get()] { sync->changed(); });
  return peers;
}

}  // namespace

struct Router::State {
  State(RouterOptions o, std::unique_ptr<RouteMetrics> m, std::unique_ptr<Balancer> b,
        std::unique_ptr<PeerSync> p, std::optional<PromptTokens> t, std::shared_ptr<SSL_CTX> tls)
      : options(std::move(o)),
        metrics(std::move(m)),
        balancer(std::move(b)),
        peers(std::move(p)),
        tokens(std::move(t)),
        keys(all_keys(options)),
        tenants(options.tenants),
        client(std::make_unique<http::AsyncClient>(
            http::AsyncClientOptions{.threads = options.http.threads, .tls = std::move(tls)})),
        monitor(*balancer, options, client->next_loop(),
                [this](const std::string& worker) { workers_of.sessions.forget(worker); }),
        warm_start(*balancer, *metrics, options),
        subscriber(
            balancer->fleet(),
            [this, warned = false](const Member& member, std::span<const CacheEvent> events,
                                   const CachePosition& position) mutable {
              metrics->cache_changed(member.endpoint->label(), events.size());
              if (!tokens && std::ranges::any_of(events, is_of_engine) && !std::exchange(warned, true))
                log_warning(
                    "{} sends KV events, but without --tokenizer-path they match only prompts of token ids: "
                    "for "
                    "texts and chats, the router estimates which blocks are cached",
                    member.endpoint->label());
              balancer->cache_changed(member, events, position);
            },
            std::ref(warm_start)),
        sources(follow_workers(*balancer, options)),
        retries(options.retry.budget),
        admission(options.max_concurrent_requests),
        queue(options.queue.size > 0 ? std::make_unique<RouteQueue>(*balancer, admission, options.queue)
                                     : nullptr),
        context{options,
                *balancer,
                *metrics,
                monitor,
                tokens ? &*tokens : nullptr,
                retries,
                workers_of.stored,
                workers_of.sessions,
                moves,
                admission,
                queue.get(),
                readers} {}
  ~State() {
    // Stops new requests and running calls before the members that they use are destroyed.
    server.reset();
    if (batches) batches->stop();
    if (queue) queue->stop();
    readers.join();
    moves.clear();
    batches.reset();
    client.reset();
  }

  void handle(std::shared_ptr<http::Exchange> exchange);
  void handle_batches(std::shared_ptr<http::Exchange> exchange);

  const RouterOptions options;
  std::unique_ptr<RouteMetrics> metrics;
  std::unique_ptr<Balancer> balancer;
  std::unique_ptr<PeerSync> peers;  // null: the router has no peers
  const std::optional<PromptTokens> tokens;
  const ApiKeys keys;
  Tenants tenants;
  std::unique_ptr<http::AsyncClient> client;
  Monitor monitor;
  WarmStart warm_start;
  CacheSubscriber subscriber;
  std::vector<std::unique_ptr<EndpointSource>> sources;
  RetryBudget retries;
  struct {
    WorkerOfId stored, sessions;
  } workers_of;
  RunningMoves moves;
  Admission admission;
  const std::unique_ptr<RouteQueue> queue;  // null: the router has no queue
  boost::asio::thread_pool readers{2};
  const RouteContext context;
  std::unique_ptr<BatchApi> batches;  // null: workers handle files and batches
  std::unique_ptr<http::Server> server;
};

// Handles requests about files and batches on a thread that may block, because they read and write files.
void Router::State::handle_batches(std::shared_ptr<http::Exchange> exchange) {
  boost::asio::post(readers, [this, exchange = std::move(exchange)] {
    const auto done = within_memory([&]() -> Result<> {
      auto refusal = exchange->decode_body(options.http.body_bytes_max);
      refusal ? exchange->respond(*std::move(refusal)) : batches->handle(exchange);
      return {};
    });
    if (!done) exchange->respond(openai::error_response(done.error()));
  });
}

void Router::State::handle(std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  if (anthropic::is_client(request.path, request.headers))
    anthropic::amend_answer(*exchange, request.path, request_id(context, request.headers));
  const bool requests_page =
      options.page && request.path == "/" && (request.method == "GET" || request.method == "HEAD");
  if (!is_public(request))
    if (auto refusal = unauthorized(keys, request))
      return exchange->respond(requests_page ? login_page() : *std::move(refusal));
  if (requests_page) return exchange->respond(fleet_page());
  Tenant* tenant = tenants.find(authorization_of(request));
  if (tenant && !is_public(request) && !is_for_tenants(request))
    return exchange->respond(openai::error_response(
        403, "only the operator of the router may use this route: send a key of --api-key"));
  if (auto answer = admin_answer(context, request)) {
    if (request.path == "/metrics") answer->body += tenants.metrics() + (queue ? queue->metrics() : "");
    return exchange->respond(*std::move(answer));
  }
  if (requests_websocket(request)) return exchange->respond(no_websocket());
  Tenant::Answer admitted = tenant ? tenant->admit(now_us()) : Tenant::Answer();
  if (admitted.retry_after_s > 0) return exchange->respond(limited(admitted, request.path));
  if (is_session_import(request) && (tenant || options.api_keys.empty()))
    return exchange->respond(openai::error_response(403,
                                                    "only the operator of the router may import a session: "
                                                    "send a key of --api-key of the router, or send "
                                                    "the file to a worker"));
  if (batches && names_batches(request.path)) return handle_batches(std::move(exchange));
  auto to_all =
      is_session_list(request) ? FanOutPlan{.merge = merge_session_lists(request)} : fan_out_plan(request);
  if ((to_all || !queue) && !admission.admit()) {
    metrics->rate_limited();
    return exchange->respond(proxy_error(
        request.path, 429,
        fmt::format("the router may run at most {} requests (--max-concurrent-requests): retry later",
                    options.max_concurrent_requests)));
  }
  http::ClientLoop& loop = client->loop_of(*exchange);
  if (to_all) {
    http::Headers headers = tenant ? headers_for_workers(options, request.headers, tenant->options().name)
                                   : passed_on(request.headers);
    const auto share = std::make_shared<TenantShare>(std::move(admitted.share));
    return fan_out(context, loop, std::move(exchange), std::move(headers), *std::move(to_all),
                   [this, share] { admission.leave(); });
  }
  Forwarding::start(context, loop, std::move(exchange), std::move(admitted.share),
                    tenant ? tenant->options().name : "");
}

Result<std::unique_ptr<Router>> Router::start(RouterOptions options, const BatchOptions& batch_options) {
  TRY_VOID(check_pools(options));
  auto metrics = std::make_unique<RouteMetrics>(options.telemetry.accounts);
  TRY(auto balancer, make_balancer(options, *metrics));
  TRY_VOID(add_workers(*balancer, options));
  std::optional<PromptTokens> tokens;
  if (options.tokenizer) {
    TRY(tokens, PromptTokens::make(options.tokenizer));
  }
  TRY(auto tls, http::client_tls_context(options.workers.tls));
  TRY(auto peers, join_peers(*balancer, *metrics, options.peers));
  std::unique_ptr<batches::Store> store;
  if (!batch_options.folder.empty()) {
    const bool clients = !options.tenants.empty() || options.api_keys.size() > 1;
    TRY(store, batches::Store::open(batch_options.folder, batch_options.bytes_max, clients));
  }
  http::ServerOptions http = options.http;
  auto state = std::make_unique<State>(std::move(options), std::move(metrics), std::move(balancer),
                                       std::move(peers), std::move(tokens), std::move(tls));
  http.refusal = [](int status, const std::string& message) {
    return openai::error_response(status, message);
  };
  http.admit = [state = state.get()](const http::Request& request) {
    return unauthorized(state->keys, request);
  };
  TRY_VOID(state->metrics->accounts.open());
  state->monitor.start();
  if (store)
    state->batches =
        batches::start(std::move(store), batch_host(state->context, *state->client, state->tenants));
  const auto handle = [state = state.get()](std::shared_ptr<http::Exchange> exchange) {
    state->handle(std::move(exchange));
  };
  TRY(state->server, start_server(std::move(http), handle, *state->client));
  return std::unique_ptr<Router>(new Router(std::move(state)));
}

Router::Router(std::unique_ptr<State> state) : state_(std::move(state)) {}
Router::~Router() = default;

std::uint16_t Router::port() const { return state_->server->port(); }
std::string Router::address() const { return state_->server->address(); }
void Router::stop(int grace_ms) {
  if (state_->batches) state_->batches->stop();
  state_->server->stop(grace_ms);
}

}  // namespace octavo::fleet
