#include "fleet/pick/pick_server.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "fleet/balance/index_metrics.h"
#include "fleet/discover/endpoints.h"
#include "fleet/discover/event_addresses.h"
#include "fleet/discover/kube_lease.h"
#include "fleet/observe/cache_collector.h"
#include "fleet/observe/cache_subscriber.h"
#include "fleet/observe/metrics_text.h"
#include "fleet/pick/old_metric_names.h"
#include "fleet/pick/scraper.h"
#include "http/async_client.h"
#include "http/tls.h"

namespace octavo::fleet {
namespace {

constexpr ProbeOptions kScrapesAreProbes{.failure_threshold = 3, .success_threshold = 1};
constexpr BreakerOptions kNoBreaker{.enabled = false};  // only the gateway knows the outcomes of requests
constexpr int kSecondMs = 1000;
constexpr int kPagePauseMs = 2;  // short, because pages are read every 50 ms

Result<std::shared_ptr<SSL_CTX>> context_of(const TlsSource& tls) {
  http::ClientTlsOptions options{
      .certfile = tls.certfile, .keyfile = tls.keyfile, .verify = !tls.any_certificate};
  if (!tls.ca_file.empty()) options.ca_files.push_back(tls.ca_file);
  return http::client_tls_context(options);
}

Result<PollOptions> poll_options(const PickOptions& options, const PageSource& source) {
  std::shared_ptr<SSL_CTX> tls;
  if (source.tls) {
    TRY(tls, context_of(*source.tls));
  }
  const auto own_ms = static_cast<int>(source.interval_us / 1000);
  const int tick = options.scrape_interval_ms;
  return PollOptions{.path = source.path,
                     .interval_ms = std::max(1, (own_ms + tick - 1) / tick) * tick,
                     .port = source.port,
                     .at_node = source.at_node,
                     .tls = std::move(tls),
                     .timeout_ms = options.scrape_timeout_ms};
}

Result<Scraper::Pages> scraped_pages(const PickOptions& options) {
  const EndpointPickerConfig& config = options.config;
  Scraper::Pages pages{.engines = config.engines};
  if (config.reads_metrics) {
    TRY(pages.metrics, poll_options(options, config.metrics));
  }
  if (config.models) {
    TRY(pages.models, poll_options(options, *config.models));
  }
  if (config.gpus) {
    TRY(pages.gpus, poll_options(options, *config.gpus));
  }
  return pages;
}

// Renames the fields of http::Server's errors as the flags of the picker.
Error metrics_error(Error error) {
  constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
      {"port", "metrics-port"},
      {"ssl-certfile", "metrics-cert-dir"},
      {"ssl-keyfile", "metrics-cert-dir"},
      {"ssl-ca-certs", "metrics-client-ca-file"}};
  for (const auto& [field, flag] : kFlags)
    if (error.field == field) {
      error.field = flag;
      break;
    }
  return error;
}

std::string identity() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}_{:016x}", host.data(), secret_seed());
}

}  // namespace

struct PickServer::State {
  State(std::unique_ptr<Balancer> b, const PickOptions& options, Scraper::Pages pages)
      : balancer(std::move(b)),
        context(*balancer, options.processor),
        events(options.config.events),
        pool(options.kubernetes ? options.kubernetes->pool : ""),
        client(std::make_unique<http::AsyncClient>(http::AsyncClientOptions{.threads = 1})),
        loop(client->next_loop()),
        page_client(std::make_unique<http::AsyncClient>(http::AsyncClientOptions{.pause_ms = kPagePauseMs})),
        scraper(*balancer, page_client->next_loop(), std::move(pages)) {}
  ~State() {
    collector.reset();
    subscriber.reset();
    lease.reset();
    // Stops changes of endpoints, then requests, and then readings of pages, while the members below, which
    // they use, still exist.
    sources.clear();
    grpc.reset();
    metrics.reset();
    page_client.reset();
    client.reset();
  }

  void every_second();
  Result<> listen();
  void set_endpoints(std::vector<Endpoint> endpoints, const std::string& source = {});
  void follow(const PickOptions& options);
  // Updates the conditions of readiness. nullopt: no change.
  void know(std::optional<bool> pods, std::optional<bool> leader);
  http::Response answer(const http::Request& request) const;

  std::unique_ptr<Balancer> balancer;
  ProcessorContext context;
  const std::optional<CacheEventsSource> events;
  const std::string pool;  // name of the InferencePool; "": no pool
  std::unique_ptr<http::AsyncClient> client;
  http::ClientLoop& loop;
  std::unique_ptr<http::AsyncClient> page_client;
  Scraper scraper;
  std::unique_ptr<http::Server> metrics;
  std::unique_ptr<ExtProcServer> grpc;
  std::mutex readiness;
  bool pods_known = false, leads = false, stopping = false;
  std::optional<PolledOptions> watched;  // nullopt: the configuration file is not watched
  std::vector<std::unique_ptr<EndpointSource>> sources;
  std::unique_ptr<KubeLease> lease;
  std::unique_ptr<CacheSubscriber> subscriber;  // null: the picker does not subscribe to endpoints
  std::unique_ptr<CacheCollector> collector;    // null: engines do not connect to the picker
};

void PickServer::State::set_endpoints(std::vector<Endpoint> endpoints, const std::string& source) {
  if (events && events->discover)
    add_event_addresses(endpoints, {.live = events->port, .replay = events->replay_port}, events->pods);
  balancer->set_endpoints(std::move(endpoints), source);
}

Result<> PickServer::State::listen() {
  if (!events) return {};
  const auto deliver = [this](const Member& member, std::span<const CacheEvent> changes,
                              const CachePosition& position) {
    balancer->cache_changed(member, changes, position);
    context.metrics.counted_events(changes.size());
  };
  if (events->discover) subscriber = std::make_unique<CacheSubscriber>(balancer->fleet(), deliver);
  if (events->bind.empty()) return {};
  TRY(collector, CacheCollector::start(events->bind, events->topic, balancer->fleet(), deliver,
                                       "kvEventsConfig.zmqEndpoint"));
  return {};
}

void PickServer::State::know(std::optional<bool> pods, std::optional<bool> leader) {
  const std::lock_guard lock(readiness);
  pods_known = pods.value_or(pods_known);
  leads = leader.value_or(leads);
  if (!stopping) grpc->set_ready(pods_known && leads);
}

void PickServer::State::follow(const PickOptions& options) {
  if (watched)
    sources.push_back(std::make_unique<EndpointSource>(
        *watched, [this](std::vector<Endpoint> endpoints) { set_endpoints(std::move(endpoints)); }));
  for (const EndpointSourceOptions& each : options.sources)
    sources.push_back(std::make_unique<EndpointSource>(
        each, [this, name = fmt::format("list {}", sources.size())](std::vector<Endpoint> endpoints) {
          set_endpoints(std::move(endpoints), name);
        }));
  if (!options.kubernetes) return;
  const KubePoolOptions& cluster = *options.kubernetes;
  know(false, options.lease.empty());
  sources.push_back(std::make_unique<EndpointSource>(
      cluster,
      [this](std::vector<Endpoint> endpoints) {
        set_endpoints(std::move(endpoints));
        know(true, {});
      },
      [this](RequestRules rules) {
        context.rules = std::make_shared<const RequestRules>(std::move(rules));
      }));
  if (!options.lease.empty())
    lease = std::make_unique<KubeLease>(cluster.api, cluster.space, options.lease, identity(),
                                        [this](bool leader) { know({}, leader); });
}

void PickServer::State::every_second() {
  balancer->tick();
  loop.after(kSecondMs, [this] { every_second(); });
}

http::Response PickServer::State::answer(const http::Request& request) const {
  if (request.path == "/metrics") {
    std::string page = context.metrics.text(*balancer->view(), pool);
    write_index_metrics(page, *balancer);
    if (context.gate) page += context.gate->metrics(pool);
    add_old_metric_names(page);
    return {.content_type = std::string(kMetricsContentType), .body = std::move(page)};
  }
  if (request.path == "/health") return {.content_type = "text/plain", .body = "ok\n"};
  return {
      .status = 404, .content_type = "text/plain", .body = "this port serves only /metrics and /health\n"};
}

Result<std::unique_ptr<PickServer>> PickServer::start(PickOptions options) {
  ProbeOptions probes = kScrapesAreProbes;
  probes.needed = options.config.reads_metrics;
  TRY(auto balancer,
      Balancer::make(
          {.pools = {{.pipeline = options.config.pipeline}}, .probes = probes, .breaker = kNoBreaker}));
  options.processor.flow = options.config.flow;
  options.processor.parsers = options.config.parsers;
  options.processor.shedding = options.config.shedding;
  options.processor.primary_port = options.config.primary_port;
  options.processor.media_tokens = options.config.media_tokens;
  options.processor.attributes = options.config.attributes;
  options.processor.reports_served = options.config.reports_served;
  TRY(Scraper::Pages pages, scraped_pages(options));
  auto state = std::make_unique<State>(std::move(balancer), options, std::move(pages));
  if (const auto& file = options.config.discovery) {
    TRY(options.endpoints, read_endpoints_file(file->path));
    if (file->watch) {
      TRY(state->watched, poll_file(file->path));
    }
  }
  if (options.config.tokens)
    state->context.renderer = std::make_unique<PromptRenderer>(
        state->loop, *options.config.tokens,
        [balancer = state->balancer.get()]() -> std::optional<http::Address> {
          const auto address = http::parse_base_url(balancer->any_url());
          return address ? std::optional(*address) : std::nullopt;
        });
  if (state->balancer->burst())
    state->context.bursts = std::make_unique<BurstGate>(*state->balancer, state->loop);
  state->set_endpoints(std::move(options.endpoints));
  TRY_VOID(state->listen());
  state->scraper.start();
  state->loop.post([state = state.get()] { state->every_second(); });
  auto metrics = http::Server::start(std::move(options.metrics),
                                     [state = state.get()](std::shared_ptr<http::Exchange> exchange) {
                                       exchange->respond(state->answer(exchange->request()));
                                     });
  if (!metrics) return std::unexpected(metrics_error(std::move(metrics.error())));
  state->metrics = *std::move(metrics);
  TRY(state->grpc, ExtProcServer::start(options.grpc, state->context));
  state->follow(options);
  return std::unique_ptr<PickServer>(new PickServer(std::move(state)));
}

PickServer::PickServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PickServer::~PickServer() = default;

std::uint16_t PickServer::grpc_port() const { return state_->grpc->port(); }
std::uint16_t PickServer::health_port() const { return state_->grpc->health_port(); }
std::uint16_t PickServer::metrics_port() const { return state_->metrics->port(); }
void PickServer::stop(int grace_ms) {
  {
    const std::lock_guard lock(state_->readiness);
    state_->stopping = true;
  }
  state_->grpc->stop(grace_ms);
}

}  // namespace octavo::fleet
