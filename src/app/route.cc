// octavo route: routes requests to the best of many replicas.
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/kube_flags.h"
#include "app/listen_flags.h"
#include "app/other_router_flags.h"
#include "app/policy_flags.h"
#include "app/source_flags.h"
#include "app/stop_signals.h"
#include "app/tracing_flag.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/route/router.h"
#include "http/url.h"
#include "local/flag_table.h"
#include "local/load_tokenizer.h"

namespace octavo {
namespace {

using fleet::DisaggregationOptions;
using fleet::HealthOptions;
using fleet::PeerOptions;
using fleet::RetryOptions;
using fleet::RouterOptions;
using fleet::TelemetryOptions;
using fleet::WorkerOptions;

struct PodFlags {
  bool discover = false;
  std::vector<std::string> selector, prefill_selector, decode_selector;
  int port = 80;
  std::string space, api;
};

struct RouteCommand {
  std::string tokenizer_path;
  std::string tenants;
  std::string prices;
  std::string warm_from;
  RouterOptions options;
  fleet::BatchOptions batches;
  PodFlags pods;
  SourceFlags sources;
  int shutdown_grace_s = 180;
  std::string traces_endpoint;
};

using RouterFlag = FlagRow<RouterOptions>;
using RouteFlag = FlagRow<RouteCommand>;

constexpr RouterFlag kWorkerFlags[] = {
    {"--worker-urls", flag::to<&RouterOptions::workers, &WorkerOptions::urls>,
     "URLs of the replicas, each as http://host:port or https://host:port"},
    {"--ca-cert-paths",
     flag::to<&RouterOptions::workers, &WorkerOptions::tls, &http::ClientTlsOptions::ca_files>,
     "PEM files of certificate authorities for workers with https:// URLs, in addition to the system's "
     "authorities"},
    {"--client-cert-path",
     flag::to<&RouterOptions::workers, &WorkerOptions::tls, &http::ClientTlsOptions::certfile>,
     "PEM file of the client certificate that the router sends to workers with https:// URLs"},
    {"--client-key-path",
     flag::to<&RouterOptions::workers, &WorkerOptions::tls, &http::ClientTlsOptions::keyfile>,
     "PEM file of the client certificate's private key (default: --client-cert-path)"},
    {"--kv-events", flag::to<&RouterOptions::workers, &WorkerOptions::kv_events>,
     "Address of the KV events of each worker, in the order of --worker-urls: tcp://host:5557, or "
     "tcp://host:5557,tcp://host:5558 with a replay address, or none. The policy kv_aware uses the events"},
};

constexpr RouteFlag kPromptFlags[] = {
    {"--tokenizer-path,--model-path", flag::to<&RouteCommand::tokenizer_path>,
     "Folder or GGUF file of the workers' model; kv_aware needs its tokenizer to match text prompts with KV "
     "events"},
};

constexpr RouterFlag kPolicyFlag[] = {
    {"--policy", flag::to<&RouterOptions::policy>, policies_text, OneOfList{policy_names}},
};

// As in SGLang, a bootstrap port or "none" may follow a URL.
Result<> take_prefill_urls(const std::vector<std::string>& words, RouterOptions& o) {
  for (const std::string& word : words) {
    int port = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), port);
    const bool is_number = error == std::errc() && end == word.data() + word.size();
    if (word != "none" && !is_number) {
      o.pd.prefill_urls.push_back(word);
      o.pd.bootstrap_ports.push_back(0);
      continue;
    }
    if (o.pd.prefill_urls.empty()) return invalid("", "must begin with a URL, got {}", quoted_text(word));
    if (is_number && (port < 1 || port > 65'535))
      return invalid("", "a bootstrap port must be from 1 to 65535, got {}", word);
    o.pd.bootstrap_ports.back() = port;
  }
  return {};
}

DisaggregationOptions& pd_of(RouterOptions& o) { return o.pd; }

constexpr RouterFlag kPoolFlags[] = {
    {"--pd-disaggregation,--vllm-pd-disaggregation", flag::to<pd_of, &DisaggregationOptions::enabled>,
     "Compute prompts on the workers of --prefill and answers on those of --decode, which fetch the KV "
     "blocks (--kv-transfer-config of octavo serve and vllm serve)"},
    {"--prefill", flag::parsed<take_prefill_urls>,
     "URL of a worker that computes prompts, as http://host:port; can be given several times. A number after "
     "the URL is the bootstrap port of an SGLang engine, which gets each request together with a worker of "
     "--decode; \"none\" means no bootstrap port"},
    {"--decode", flag::to<pd_of, &DisaggregationOptions::decode_urls>,
     "URL of a worker that decodes, as http://host:port; can be given several times"},
    {"--max-local-prefill-length", flag::to<pd_of, &DisaggregationOptions::max_local_length>,
     "With --pd-disaggregation: maximum number of uncached prompt tokens that a worker of --decode computes "
     "itself; 0: workers of --prefill compute all prompts",
     flag::range(0, 100'000'000)},
    {"--enforce-disagg", flag::to<pd_of, &DisaggregationOptions::enforced>,
     "Refuse a request if no worker of --prefill can compute its prompt. Without this flag a worker of "
     "--decode computes the prompt, and octavo_route_prefills_total counts it"},
    {"--prefill-policy", flag::to<pd_of, &DisaggregationOptions::prefill_policy>,
     "Policy for the workers of --prefill (default: --policy)", OneOfList{policy_names}},
    {"--decode-policy", flag::to<pd_of, &DisaggregationOptions::decode_policy>,
     "Policy for the workers of --decode (default: --policy)", OneOfList{policy_names}},
};

constexpr FlagRow<PodFlags> kPodFlags[] = {
    {"--service-discovery", flag::to<&PodFlags::discover>,
     "Use the ready pods of a Kubernetes cluster as workers, in addition to --worker-urls"},
    {"--selector", flag::to<&PodFlags::selector>, "Labels of the pods that are workers, each as key=value"},
    {"--prefill-selector", flag::to<&PodFlags::prefill_selector>,
     "With --pd-disaggregation: labels of the pods that prefill"},
    {"--decode-selector", flag::to<&PodFlags::decode_selector>,
     "With --pd-disaggregation: labels of the pods that decode"},
    {"--service-discovery-port", flag::to<&PodFlags::port>, "Port of the pods of --service-discovery",
     flag::range(1, 65535)},
    {"--service-discovery-namespace", flag::to<&PodFlags::space>,
     "Namespace of the pods of --service-discovery (default: the router's namespace)"},
};

constexpr RouteFlag kPeerFlags[] = {
    {"--router-sync", flag::to<&RouteCommand::options, &RouterOptions::peers, &PeerOptions::endpoint>,
     "ZeroMQ address at which this router publishes its requests in flight to other routers, such as "
     "tcp://*:5600"},
    {"--router-warm-from", flag::to<&RouteCommand::warm_from>,
     "URL of a running router, as http://host:port; this router copies its index of the workers' caches at "
     "the start"},
    {"--router-peers", flag::to<&RouteCommand::options, &RouterOptions::peers, &PeerOptions::peers>,
     "Addresses of --router-sync of other routers with the same workers, each as host:port. The list may "
     "contain this router itself, and names with several addresses"},
};

void disable_retries(RouterOptions& o) { o.retry.attempts_max = 1; }
RetryOptions& retry_of(RouterOptions& o) { return o.retry; }
fleet::BreakerOptions& breaker_of(RouterOptions& o) { return o.health.breaker; }
fleet::ProbeOptions& probes_of(RouterOptions& o) { return o.health.probes; }

constexpr RouterFlag kFailureFlags[] = {
    {"--retry-max-retries", flag::to<retry_of, &RetryOptions::attempts_max>,
     "Maximum number of attempts for one request; each attempt uses a different replica if possible",
     flag::range(1, 100)},
    {"--retry-initial-backoff-ms", flag::to<retry_of, &RetryOptions::initial_backoff_ms>,
     "Milliseconds before the second attempt", flag::range(0, 600'000)},
    {"--retry-max-backoff-ms", flag::to<retry_of, &RetryOptions::max_backoff_ms>,
     "Maximum milliseconds between two attempts", flag::range(0, 600'000)},
    {"--retry-backoff-multiplier", flag::to<retry_of, &RetryOptions::backoff_multiplier>,
     "Factor by which each wait is longer than the wait before it", flag::range(1.0, 100.0)},
    {"--retry-jitter-factor", flag::to<retry_of, &RetryOptions::jitter>, "Random fraction of each wait",
     flag::range(0.0, 1.0)},
    {"--retry-budget", flag::to<retry_of, &RetryOptions::budget>,
     "Maximum number of retries (after 429 or 5xx) and of second requests (--hedge-after-ms), as a fraction "
     "of all requests; ten per second are always allowed",
     flag::range(0.0, 100.0)},
    {"--disable-retries", flag::calls<disable_retries>, "Send each request only once"},
    {"--hedge-after-ms", flag::to<&RouterOptions::retry, &RetryOptions::hedge_after_ms>,
     "Milliseconds without a first byte after which a second replica also gets the request; the client gets "
     "the first reply. 0: never",
     flag::range(0, 600'000)},
    {"--slow-start-secs", flag::to<&RouterOptions::slow_start_secs>,
     "Seconds during which the number of requests for a new replica grows to its full share; 0: full share "
     "at once",
     flag::range(0, 86'400)},
    {"--migration-limit", flag::to<&RouterOptions::retry, &RetryOptions::migration_limit>,
     "Maximum number of times that a stream continues on another replica after its replica fails; needs "
     "octavo serve as replicas",
     flag::range(0, 100)},
    {"--cb-failure-threshold", flag::to<breaker_of, &fleet::BreakerOptions::failure_threshold>,
     "Number of failures in a row that open the circuit breaker of a replica", flag::range(1, 1'000'000)},
    {"--cb-success-threshold", flag::to<breaker_of, &fleet::BreakerOptions::success_threshold>,
     "Number of successes that close the circuit breaker again", flag::range(1, 1'000'000)},
    {"--cb-timeout-duration-secs", flag::seconds<1'000'000, breaker_of, &fleet::BreakerOptions::timeout_us>,
     "Seconds until an open circuit breaker lets one request through", flag::range(1, 86'400)},
    {"--cb-window-duration-secs", flag::seconds<1'000'000, breaker_of, &fleet::BreakerOptions::window_us>,
     "Seconds after which a failure no longer counts for the circuit breaker", flag::range(1, 86'400)},
    {"!--disable-circuit-breaker", flag::to<breaker_of, &fleet::BreakerOptions::enabled>,
     "Keep sending requests to replicas that fail"},
    {"--health-check-endpoint", flag::to<&RouterOptions::health, &HealthOptions::endpoint>,
     "Path of health checks at the replicas"},
    {"--health-check-interval-secs",
     flag::seconds<1'000, &RouterOptions::health, &HealthOptions::interval_ms>,
     "Seconds between two health checks of a replica", flag::range(1, 86'400)},
    {"--worker-startup-check-interval",
     flag::seconds<1'000, &RouterOptions::health, &HealthOptions::startup_interval_ms>,
     "Seconds between two health checks of a worker that has not answered one yet (default: 0.5)",
     flag::range(1, 86'400),
     {.no_default = true}},
    {"--health-check-timeout-secs", flag::seconds<1'000, &RouterOptions::health, &HealthOptions::timeout_ms>,
     "Seconds after which a health check without a reply fails", flag::range(1, 3'600)},
    {"--health-failure-threshold", flag::to<probes_of, &fleet::ProbeOptions::failure_threshold>,
     "Number of failed health checks in a row that make a replica unhealthy", flag::range(1, 1'000)},
    {"--health-success-threshold", flag::to<probes_of, &fleet::ProbeOptions::success_threshold>,
     "Number of successful health checks in a row that make a replica healthy again", flag::range(1, 1'000)},
    {"--request-timeout-secs", flag::seconds<1'000, &RouterOptions::request_timeout_ms>,
     "Maximum seconds for all attempts of a request together", flag::range(1, 86'400)},
    {"--prefill-timeout-secs", flag::seconds<1'000, pd_of, &DisaggregationOptions::prefill_timeout_ms>,
     "With --pd-disaggregation: maximum seconds for a prompt on a worker of --prefill; after this time a "
     "worker of --decode computes the prompt",
     flag::range(1, 86'400)},
};

constexpr RouteFlag kClientFlags[] = {
    {kTracesFlag, flag::to<&RouteCommand::traces_endpoint>,
     "URL of a collector (OTLP) that gets a span for each request and for each call to a worker: "
     "http://HOST:4318/v1/traces or grpc://HOST:4317"},
    {"--api-key",
     flag::to<&RouteCommand::options, &RouterOptions::api_keys>,
     "API keys for clients. The router sends the first key to replicas when it reads their health and "
     "metrics",
     {},
     {.environment = "OCTAVO_API_KEY"}},
    {"--tenants", flag::to<&RouteCommand::tenants>,
     "File of tenants, YAML or JSON: name, keys, requestsPerSecond, burst and "
     "maxConcurrentRequests of each"},
    {"--access-log",
     flag::to<&RouteCommand::options, &RouterOptions::telemetry, &TelemetryOptions::accounts,
              &AccountOptions::access_log>,
     "File to which a line of JSON is appended for each request with a cost: tenant, time, tokens and cost"},
    {"--prices", flag::to<&RouteCommand::prices>,
     "File of prices per unit of cost, YAML or JSON: costs are also reported as money"},
    {"--batch-dir", flag::to<&RouteCommand::batches, &fleet::BatchOptions::folder>,
     "Folder for the data of /v1/files, /v1/batches and /v1/messages/batches; batches continue after a "
     "restart. The router creates the folder; only one router can use it. Batch requests are last in the "
     "queue (--queue-size), and at most 16 per worker run. Without this flag a worker answers these routes"},
    {"--batch-dir-bytes", flag::to<&RouteCommand::batches, &fleet::BatchOptions::bytes_max>,
     "Maximum number of bytes of all files and answers in --batch-dir",
     flag::range(std::int64_t{1} << 20, std::int64_t{1} << 50)},
};

std::vector<std::string>& origins_of(RouterOptions& o) { return o.http.cors->origins; }

constexpr RouterFlag kLimitFlags[] = {
    {"!--no-page", flag::to<&RouterOptions::page>, "Do not serve the web page at /"},
    {"--cors-allowed-origins", flag::to<origins_of>,
     "Origins of web pages that may call the router (default: all)"},
    log_level_flag<RouterOptions>(),
    {"--request-id-headers", flag::to<&RouterOptions::telemetry, &TelemetryOptions::request_id_headers>,
     "Headers whose value is the id of a request that has no X-Request-Id"},
    {"--max-payload-size", flag::to<&RouterOptions::http, &http::ServerOptions::body_bytes_max>,
     "Maximum number of bytes of a request body", flag::range(std::uint64_t{1}, std::uint64_t{1} << 32)},
    {"--max-concurrent-requests", flag::to<&RouterOptions::max_concurrent_requests>,
     "Maximum number of running requests; above it, a request waits (--queue-size) or gets status 429. -1: "
     "no limit",
     flag::range(-1, 1'000'000)},
    {"--queue-size", flag::to<&RouterOptions::queue, &fleet::QueueOptions::size>,
     "Maximum number of requests that wait while all replicas are at their limit; above it, a request gets "
     "status 429. The router learns a replica's limit when the replica answers 429 or 503. Waiting requests "
     "are ordered by `priority`, then round robin over tenants. 0: no queue",
     flag::range(0, 100'000)},
    {"--queue-timeout-secs", flag::to<&RouterOptions::queue, &fleet::QueueOptions::timeout_s>,
     "Maximum seconds in the queue. After this time the client gets the answer of the replica that refused "
     "the request, or status 408 if none has refused it",
     flag::range(1, 86'400)},
    {"--http-threads", flag::to<&RouterOptions::http, &http::ServerOptions::threads>,
     "Number of threads that serve clients", flag::range(1, 64)},
};

void add_route_flags(CLI::App& command, RouteCommand& c) {
  RouterOptions& o = c.options;
  constexpr const char *kRouting = "Routing", *kKubernetes = "Kubernetes", *kServer = "Server";
  add_flags(command, o, kRouting, kWorkerFlags);
  add_flags(command, c, kRouting, kPromptFlags);
  add_flags(command, o, kRouting, kPolicyFlag);
  add_policy_flags(command, kRouting, o.policy_options);
  add_flags(command, o, kRouting, kPoolFlags);
  add_flags(command, c.pods, kKubernetes, kPodFlags);
  add_kube_api_flag(command, kKubernetes, c.pods.api);
  add_source_flags(command, c.sources);
  add_event_flags(command, c.sources);
  add_flags(command, c, "Several routers", kPeerFlags);
  add_flags(command, o, "Failures", kFailureFlags);
  o.http.port = 30000;
  o.http.cors = http::CorsOptions{};
  add_listen_flags(command, o.http, c.shutdown_grace_s);
  add_flags(command, c, kServer, kClientFlags);
  add_flags(command, o, kServer, kLimitFlags);
  add_other_router_flags(command);
}

Result<> read_discovery(RouteCommand& c) {
  struct Source {
    const char* flag;
    const std::vector<std::string>& labels;
    fleet::Role role;
  };
  const Source sources[] = {{"selector", c.pods.selector, fleet::Role::both},
                            {"prefill-selector", c.pods.prefill_selector, fleet::Role::prefill},
                            {"decode-selector", c.pods.decode_selector, fleet::Role::decode}};
  for (const Source& source : sources) {
    if (source.labels.empty()) continue;
    if (!c.pods.discover) return invalid(source.flag, "needs --service-discovery");
    if ((source.role == fleet::Role::both) == c.options.pd.enabled)
      return invalid(source.flag, "must {}be given with pd-disaggregation",
                     c.options.pd.enabled ? "not " : "");
    fleet::KubePoolOptions pods;
    pods.ports.push_back(c.pods.port);
    TRY(pods.api, kube_api(c.pods.api));
    pods.space = c.pods.space.empty() ? pods.api.space : c.pods.space;
    TRY_VOID(fleet::check_kube_name(pods.space, "service-discovery-namespace"));
    TRY(pods.selector,
        fleet::parse_label_selector(fmt::format("{}", fmt::join(source.labels, ",")), source.flag));
    c.options.workers.discovered.push_back({source.role, std::move(pods)});
  }
  if (c.pods.discover && c.options.workers.discovered.empty())
    return invalid("service-discovery", "needs --selector, or --prefill-selector and --decode-selector");
  for (const auto& [flag, value] : {std::pair("worker-dns", &c.sources.dns), {"worker-srv", &c.sources.srv}})
    if (c.options.pd.enabled && !value->empty())
      return invalid(flag,
                     "cannot be combined with --pd-disaggregation, because DNS records have no roles: use "
                     "--worker-etcd, --worker-file or URLs");
  TRY(auto listed, read_sources(c.sources));
  for (auto& source : listed) c.options.workers.discovered.push_back({{}, std::move(source)});
  for (fleet::DiscoveredWorkers& workers : c.options.workers.discovered)
    workers.event_ports = c.sources.event_ports;
  return {};
}

Result<> route(RouteCommand& c) {
  StopSignals signals;

  RouterOptions& o = c.options;
  if (!c.tokenizer_path.empty()) {
    auto tokenizer = load_tokenizer(c.tokenizer_path);
    if (!tokenizer) return invalid("tokenizer-path", "{}", tokenizer.error().message);
    o.tokenizer = std::make_shared<const Tokenizer>(*std::move(tokenizer));
  }
  if (!c.tenants.empty()) {
    TRY(o.tenants, fleet::read_tenants_file(c.tenants));
  }
  if (!c.prices.empty()) {
    TRY(o.telemetry.accounts.prices, read_prices_file(c.prices));
  }
  if (!c.warm_from.empty()) {
    auto url = http::parse_url(c.warm_from);
    if (!url || url->target != "/")
      return invalid("router-warm-from", "must be http://host:port or https://host:port, got {}",
                     quoted_text(c.warm_from));
    o.warm_from = *std::move(url);
  }
  TRY_VOID(read_discovery(c));
  TRY(o.telemetry.tracer, start_tracer(c.traces_endpoint, "octavo-route"));
  const std::string policy = o.policy;
  const std::size_t named = o.workers.urls.size() + o.pd.prefill_urls.size() + o.pd.decode_urls.size();
  const std::string workers = o.workers.discovered.empty()
                                  ? fmt::format("{} workers", named)
                                  : fmt::format("{} workers and the workers that discovery finds", named);
  TRY(const auto router, fleet::Router::start(std::move(o), c.batches));
  log_info("routing by {} to {} on {}", policy, workers, router->address());

  signals.wait();
  log_info("stopping: running requests may take up to {} s to end", c.shutdown_grace_s);
  router->stop(c.shutdown_grace_s * 1000);
  return {};
}

}  // namespace

void add_route(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("route", "Route each request to the best of many replicas");
  auto options = std::make_shared<RouteCommand>();
  add_route_flags(*command, *options);
  outcome.runs(*command, options, route);
}

}  // namespace octavo
