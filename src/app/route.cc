// octavo route
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
     "Replicas, each as http://host:port or https://host:port"},
    {"--ca-cert-paths",
     flag::to<&RouterOptions::workers, &WorkerOptions::tls, &http::ClientTlsOptions::ca_files>,
     "PEM files of authorities for workers at https://, in addition to the system's"},
    {"--client-cert-path",
     flag::to<&RouterOptions::workers, &WorkerOptions::tls, &http::ClientTlsOptions::certfile>,
     "PEM file of the client certificate for such workers"},
    {"--client-key-path",
     flag::to<&RouterOptions::workers, &WorkerOptions::tls, &http::ClientTlsOptions::keyfile>,
     "PEM file of its key (default: the certificate's file)"},
    {"--kv-events", flag::to<&RouterOptions::workers, &WorkerOptions::kv_events>,
     "KV event address of each worker, in the order of --worker-urls, for kv_aware: tcp://host:5557, or "
     "tcp://host:5557,tcp://host:5558 with its replay address; none: no events"},
};

constexpr RouteFlag kPromptFlags[] = {
    {"--tokenizer-path,--model-path", flag::to<&RouteCommand::tokenizer_path>,
     "Folder or GGUF file of the workers' model: its tokenizer lets kv_aware match text prompts with KV "
     "events"},
};

constexpr RouterFlag kPolicyFlag[] = {
    {"--policy", flag::to<&RouterOptions::policy>, policies_text, OneOfList{policy_names}},
};

// Reads the URLs of prefill workers. As in SGLang, a bootstrap port or "none" may follow a URL.
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
      return invalid("", "a bootstrap port must be in [1, 65535], got {}", word);
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
     "A worker that computes prompts, as http://host:port; may be repeated. A port after it is the bootstrap "
     "port of SGLang's engines, which get each request together with a worker of --decode; \"none\": no "
     "port"},
    {"--decode", flag::to<pd_of, &DisaggregationOptions::decode_urls>,
     "A worker that decodes, as http://host:port; may be repeated"},
    {"--max-local-prefill-length", flag::to<pd_of, &DisaggregationOptions::max_local_length>,
     "With --pd-disaggregation: longest uncached part of a prompt, in tokens, that a worker of --decode "
     "computes itself; 0: workers of --prefill compute all prompts",
     flag::range(0, 100'000'000)},
    {"--enforce-disagg", flag::to<pd_of, &DisaggregationOptions::enforced>,
     "Refuse a prompt that no worker of --prefill computes; without it, a worker of --decode computes it, "
     "and octavo_route_prefills_total counts it"},
    {"--prefill-policy", flag::to<pd_of, &DisaggregationOptions::prefill_policy>,
     "The policy among the workers of --prefill, if not --policy", OneOfList{policy_names}},
    {"--decode-policy", flag::to<pd_of, &DisaggregationOptions::decode_policy>,
     "The policy among the workers of --decode, if not --policy", OneOfList{policy_names}},
};

constexpr FlagRow<PodFlags> kPodFlags[] = {
    {"--service-discovery", flag::to<&PodFlags::discover>,
     "Use ready pods as workers, in addition to --worker-urls"},
    {"--selector", flag::to<&PodFlags::selector>, "Labels of those pods, each as key=value"},
    {"--prefill-selector", flag::to<&PodFlags::prefill_selector>,
     "With --pd-disaggregation: labels of those that prefill"},
    {"--decode-selector", flag::to<&PodFlags::decode_selector>,
     "With --pd-disaggregation: labels of those that decode"},
    {"--service-discovery-port", flag::to<&PodFlags::port>, "Port of all these pods", flag::range(1, 65535)},
    {"--service-discovery-namespace", flag::to<&PodFlags::space>,
     "Their namespace (default: the router's own)"},
};

constexpr RouteFlag kPeerFlags[] = {
    {"--router-sync", flag::to<&RouteCommand::options, &RouterOptions::peers, &PeerOptions::endpoint>,
     "ZeroMQ address at which this router publishes its requests in flight to other routers, "
     "like tcp://*:5600"},
    {"--router-warm-from", flag::to<&RouteCommand::warm_from>,
     "A running router, as http://host:port: its index of the workers' caches is copied at the start"},
    {"--router-peers", flag::to<&RouteCommand::options, &RouterOptions::peers, &PeerOptions::peers>,
     "Other routers of the same workers, each as host:port of its --router-sync. May contain names with "
     "several addresses, and this router itself"},
};

void disable_retries(RouterOptions& o) { o.retry.attempts_max = 1; }
RetryOptions& retry_of(RouterOptions& o) { return o.retry; }
fleet::BreakerOptions& breaker_of(RouterOptions& o) { return o.health.breaker; }
fleet::ProbeOptions& probes_of(RouterOptions& o) { return o.health.probes; }

constexpr RouterFlag kFailureFlags[] = {
    {"--retry-max-retries", flag::to<retry_of, &RetryOptions::attempts_max>,
     "Maximum attempts for one request, on different replicas if possible", flag::range(1, 100)},
    {"--retry-initial-backoff-ms", flag::to<retry_of, &RetryOptions::initial_backoff_ms>,
     "Wait before the second attempt", flag::range(0, 600'000)},
    {"--retry-max-backoff-ms", flag::to<retry_of, &RetryOptions::max_backoff_ms>,
     "Longest wait between attempts", flag::range(0, 600'000)},
    {"--retry-backoff-multiplier", flag::to<retry_of, &RetryOptions::backoff_multiplier>,
     "Factor from one wait to the next", flag::range(1.0, 100.0)},
    {"--retry-jitter-factor", flag::to<retry_of, &RetryOptions::jitter>, "Random share of a wait",
     flag::range(0.0, 1.0)},
    {"--retry-budget", flag::to<retry_of, &RetryOptions::budget>,
     "Maximum share of retries after a refusal (429, 5xx) and of hedges; ten per second are free",
     flag::range(0.0, 100.0)},
    {"--disable-retries", flag::calls<disable_retries>, "One attempt only"},
    {"--hedge-after-ms", flag::to<&RouterOptions::retry, &RetryOptions::hedge_after_ms>,
     "Time without a first byte after which the request is also sent to a second replica; the first "
     "reply counts; 0: never",
     flag::range(0, 600'000)},
    {"--slow-start-secs", flag::to<&RouterOptions::slow_start_secs>,
     "Time over which a new replica's share of the requests grows to its full size; 0: at once",
     flag::range(0, 86'400)},
    {"--migration-limit", flag::to<&RouterOptions::retry, &RetryOptions::migration_limit>,
     "Maximum number of times that a stream continues at another replica after its replica fails, from "
     "the tokens already sent; only with octavo serve",
     flag::range(0, 100)},
    {"--cb-failure-threshold", flag::to<breaker_of, &fleet::BreakerOptions::failure_threshold>,
     "Failures in a row that open a replica's circuit breaker", flag::range(1, 1'000'000)},
    {"--cb-success-threshold", flag::to<breaker_of, &fleet::BreakerOptions::success_threshold>,
     "Successes that close it again", flag::range(1, 1'000'000)},
    {"--cb-timeout-duration-secs", flag::seconds<1'000'000, breaker_of, &fleet::BreakerOptions::timeout_us>,
     "Seconds until an open breaker tries a request", flag::range(1, 86'400)},
    {"--cb-window-duration-secs", flag::seconds<1'000'000, breaker_of, &fleet::BreakerOptions::window_us>,
     "Seconds after which a failure no longer counts", flag::range(1, 86'400)},
    {"!--disable-circuit-breaker", flag::to<breaker_of, &fleet::BreakerOptions::enabled>,
     "Keep sending requests to failing replicas"},
    {"--health-check-endpoint", flag::to<&RouterOptions::health, &HealthOptions::endpoint>,
     "Path of health checks"},
    {"--health-check-interval-secs",
     flag::seconds<1'000, &RouterOptions::health, &HealthOptions::interval_ms>, "Time between health checks",
     flag::range(1, 86'400)},
    {"--worker-startup-check-interval",
     flag::seconds<1'000, &RouterOptions::health, &HealthOptions::startup_interval_ms>,
     "Time between health checks of a worker that does not answer them yet (default: half a second)",
     flag::range(1, 86'400),
     {.no_default = true}},
    {"--health-check-timeout-secs", flag::seconds<1'000, &RouterOptions::health, &HealthOptions::timeout_ms>,
     "Time without a reply after which a check fails", flag::range(1, 3'600)},
    {"--health-failure-threshold", flag::to<probes_of, &fleet::ProbeOptions::failure_threshold>,
     "Failed checks in a row that make a replica unhealthy", flag::range(1, 1'000)},
    {"--health-success-threshold", flag::to<probes_of, &fleet::ProbeOptions::success_threshold>,
     "Successful checks in a row that make it healthy again", flag::range(1, 1'000)},
    {"--request-timeout-secs", flag::seconds<1'000, &RouterOptions::request_timeout_ms>,
     "Longest time for a request with all its attempts", flag::range(1, 86'400)},
    {"--prefill-timeout-secs", flag::seconds<1'000, pd_of, &DisaggregationOptions::prefill_timeout_ms>,
     "With --pd-disaggregation: longest time for a prompt at a worker of --prefill; then one of --decode "
     "computes it",
     flag::range(1, 86'400)},
};

constexpr RouteFlag kClientFlags[] = {
    {kTracesFlag, flag::to<&RouteCommand::traces_endpoint>,
     "Send a span for each request, and one for each call to a worker, to this collector: OTLP over HTTP as "
     "JSON, as http://HOST:4318/v1/traces"},
    {"--api-key",
     flag::to<&RouteCommand::options, &RouterOptions::api_keys>,
     "Keys for clients; the router sends the first one to replicas for health and metrics",
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
     "Folder for /v1/files, /v1/batches and /v1/messages/batches, which continue after a restart; created if "
     "missing, for one router. Their requests are last in the queue (--queue-size), at most 16 run for each "
     "worker. Without it a worker answers these routes"},
    {"--batch-dir-bytes", flag::to<&RouteCommand::batches, &fleet::BatchOptions::bytes_max>,
     "Maximum bytes of all files and answers in --batch-dir",
     flag::range(std::int64_t{1} << 20, std::int64_t{1} << 50)},
};

std::vector<std::string>& origins_of(RouterOptions& o) { return o.http.cors->origins; }

constexpr RouterFlag kLimitFlags[] = {
    {"!--no-page", flag::to<&RouterOptions::page>, "No web page at /"},
    {"--cors-allowed-origins", flag::to<origins_of>, "Origins whose pages may send requests (default: all)"},
    log_level_flag<RouterOptions>(),
    {"--request-id-headers", flag::to<&RouterOptions::telemetry, &TelemetryOptions::request_id_headers>,
     "Headers whose value is a request's id, where it has no X-Request-Id"},
    {"--max-payload-size", flag::to<&RouterOptions::http, &http::ServerOptions::body_bytes_max>,
     "Bytes of the largest request body", flag::range(std::uint64_t{1}, std::uint64_t{1} << 32)},
    {"--max-concurrent-requests", flag::to<&RouterOptions::max_concurrent_requests>,
     "Maximum number of requests at a time; others wait (--queue-size) or get 429; -1: no limit",
     flag::range(-1, 1'000'000)},
    {"--queue-size", flag::to<&RouterOptions::queue, &fleet::QueueOptions::size>,
     "Maximum number of requests that wait while no replica has room, ordered by `priority` and round "
     "robin over tenants; others get 429. The router learns a replica's limit from 429 and 503. 0: no queue",
     flag::range(0, 100'000)},
    {"--queue-timeout-secs", flag::to<&RouterOptions::queue, &fleet::QueueOptions::timeout_s>,
     "Longest wait for room; then 408, or the replica's own refusal", flag::range(1, 86'400)},
    {"--http-threads", flag::to<&RouterOptions::http, &http::ServerOptions::threads>,
     "Number of threads; each serves a share of the clients", flag::range(1, 64)},
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
    if (!c.pods.discover) return invalid(source.flag, "needs service-discovery");
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
    return invalid("service-discovery", "needs selector, or prefill-selector and decode-selector");
  for (const auto& [flag, value] : {std::pair("worker-dns", &c.sources.dns), {"worker-srv", &c.sources.srv}})
    if (c.options.pd.enabled && !value->empty())
      return invalid(flag, "must not be given with pd-disaggregation: its records have no roles");
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
                                  : fmt::format("{} workers and those that discovery finds", named);
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
