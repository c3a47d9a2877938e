// octavo route
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/kube_flags.h"
#include "app/listen_flags.h"
#include "app/policy_flags.h"
#include "app/source_flags.h"
#include "app/stop_signals.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/route/router.h"
#include "http/url.h"
#include "local/load_tokenizer.h"

namespace octavo {
namespace {

struct RouteCommand {
  std::string tokenizer_path;
  std::string tenants;
  fleet::RouterOptions options;
  bool disable_retries = false;
  bool disable_circuit_breaker = false;
  bool service_discovery = false;
  std::vector<std::string> selector, prefill_selector, decode_selector;
  int discovery_port = 80;
  std::string discovery_namespace, kube_api;
  std::string warm_from;
  SourceFlags sources;
  int request_timeout_s = 1800;
  int prefill_timeout_s = 60;
  int health_interval_s = 2;
  int health_timeout_s = 3;
  int breaker_timeout_s = 60;
  int breaker_window_s = 120;
  int shutdown_grace_s = 180;
};

void add_routing_flags(CLI::App& command, RouteCommand& c) {
  const char* group = "Routing";
  fleet::RouterOptions& o = c.options;
  command.add_option("--worker-urls", o.worker_urls, "The replicas, each as http://host:port or https://host:port")
      ->group(group);
  command
      .add_option("--ca-cert-paths", o.worker_tls.ca_files,
                  "PEM files of authorities for workers at https://, in addition to the system's")
      ->group(group);
  command
      .add_option("--client-cert-path", o.worker_tls.certfile,
                  "PEM file of the certificate that such workers are shown")
      ->group(group);
  command
      .add_option("--client-key-path", o.worker_tls.keyfile,
                  "PEM file of its key (default: the certificate's file)")
      ->group(group);
  command
      .add_option(
          "--kv-events", o.kv_events,
          "Where each worker of --worker-urls tells its KV cache events, in the same order, for kv_aware: "
          "tcp://host:5557, or tcp://host:5557,tcp://host:5558 with its replay endpoint; none: nowhere")
      ->group(group);
  command
      .add_option(
          "--tokenizer-path", c.tokenizer_path,
          "Folder or GGUF file of the workers' model, whose tokenizer makes kv_aware find prompts of text "
          "in what workers tell")
      ->group(group);
  command.add_option("--policy", o.policy, policies_text())
      ->check(CLI::IsMember(policy_names()))
      ->capture_default_str()
      ->group(group);
  add_policy_flags(command, group, o.policy_options);
  command
      .add_flag(
          "--pd-disaggregation", o.disaggregated,
          "Prompts are computed by the workers of --prefill, answers by those of --decode, which take the KV "
          "blocks over (--kv-transfer-config of octavo serve and vllm serve)")
      ->group(group);
  command
      .add_option("--prefill", o.prefill_urls,
                  "A worker that computes prompts, as http://host:port; may be repeated")
      ->group(group);
  command
      .add_option("--decode", o.decode_urls, "A worker that decodes, as http://host:port; may be repeated")
      ->group(group);
  command
      .add_option("--prefill-policy", o.prefill_policy,
                  "The policy among the workers of --prefill, if not --policy")
      ->check(CLI::IsMember(policy_names()))
      ->group(group);
  command
      .add_option("--decode-policy", o.decode_policy,
                  "The policy among the workers of --decode, if not --policy")
      ->check(CLI::IsMember(policy_names()))
      ->group(group);
}

void add_discovery_flags(CLI::App& command, RouteCommand& c) {
  const char* group = "Kubernetes";
  command
      .add_flag("--service-discovery", c.service_discovery,
                "Pods are workers while they are ready, beside those of --worker-urls")
      ->group(group);
  const auto selector = [&](const char* name, std::vector<std::string>& labels, const char* help) {
    command.add_option(name, labels, help)->group(group);
  };
  selector("--selector", c.selector, "Labels of those pods, each as key=value");
  selector("--prefill-selector", c.prefill_selector,
           "With --pd-disaggregation: labels of those that prefill");
  selector("--decode-selector", c.decode_selector, "With --pd-disaggregation: labels of those that decode");
  command.add_option("--service-discovery-port", c.discovery_port, "Port of all these pods")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--service-discovery-namespace", c.discovery_namespace,
                  "Their namespace (default: the router's own)")
      ->group(group);
  add_kube_api_flag(command, group, c.kube_api);
  add_source_flags(command, c.sources);
  add_event_flags(command, c.sources);
}

void add_peer_flags(CLI::App& command, RouteCommand& c) {
  const char* group = "Several routers";
  fleet::PeerOptions& peers = c.options.peers;
  command
      .add_option("--router-sync", peers.endpoint,
                  "ZeroMQ address at which this router publishes its requests in flight to other routers, "
                  "like tcp://*:5600")
      ->group(group);
  command
      .add_option("--router-warm-from", c.warm_from,
                  "A router that runs, as http://host:port, which is asked at the start what workers hold that tell "
                  "KV cache events and replay them")
      ->group(group);
  command
      .add_option("--router-peers", peers.peers,
                  "Other routers of the same workers, each as host:port of its --router-sync; all addresses of a "
                  "name, and this router itself may be among them")
      ->group(group);
}

void add_failure_flags(CLI::App& command, RouteCommand& c) {
  const char* group = "Failures";
  fleet::RouterOptions& o = c.options;
  const auto whole = [&](const char* name, int& value, const char* help, int min, int max) {
    command.add_option(name, value, help)->check(CLI::Range(min, max))->capture_default_str()->group(group);
  };
  whole("--retry-max-retries", o.retry.attempts_max,
        "Maximum attempts for one request, on different replicas if possible", 1, 100);
  whole("--retry-initial-backoff-ms", o.retry.initial_backoff_ms, "Wait before the second attempt", 0,
        600'000);
  whole("--retry-max-backoff-ms", o.retry.max_backoff_ms, "Longest wait between attempts", 0, 600'000);
  command
      .add_option("--retry-backoff-multiplier", o.retry.backoff_multiplier,
                  "Factor from one wait to the next")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str()
      ->group(group);
  command.add_option("--retry-jitter-factor", o.retry.jitter, "Share of a wait that is drawn at random")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--retry-budget", o.retry.budget,
                  "Share of the requests that may be sent again after a worker has refused them (429, 5xx), and for "
                  "hedges; ten a second are free")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->group(group);
  command.add_flag("--disable-retries", c.disable_retries, "One attempt only")->group(group);
  whole("--hedge-after-ms", o.hedge_after_ms,
        "Time without a first byte after which the request is also sent to a second replica; the first "
        "reply counts; 0: never",
        0, 600'000);
  whole("--slow-start-secs", o.slow_start_secs,
        "Time over which a new replica's share of the requests grows to its full size; 0: at once", 0,
        86'400);
  whole("--migration-limit", o.migration_limit,
        "Maximum number of times that a stream continues at another replica after its replica fails, from "
        "the tokens already sent; only with octavo serve",
        0, 100);
  whole("--cb-failure-threshold", o.breaker.failure_threshold,
        "Failures in a row that open a replica's circuit breaker", 1, 1'000'000);
  whole("--cb-success-threshold", o.breaker.success_threshold, "Successes that close it again", 1, 1'000'000);
  whole("--cb-timeout-duration-secs", c.breaker_timeout_s, "How long it stays open before requests are tried",
        1, 86'400);
  whole("--cb-window-duration-secs", c.breaker_window_s, "Failures longer ago do not count", 1, 86'400);
  command
      .add_flag("--disable-circuit-breaker", c.disable_circuit_breaker, "Failures do not keep requests away")
      ->group(group);
  command.add_option("--health-check-endpoint", o.health_check_endpoint, "Path of health checks")
      ->capture_default_str()
      ->group(group);
  whole("--health-check-interval-secs", c.health_interval_s, "Time between health checks", 1, 86'400);
  whole("--health-check-timeout-secs", c.health_timeout_s, "Time without a reply after which a check fails",
        1, 3'600);
  whole("--health-failure-threshold", o.probes.failure_threshold, "Failed checks in a row: unhealthy", 1,
        1'000);
  whole("--health-success-threshold", o.probes.success_threshold, "Successful checks in a row: healthy again",
        1, 1'000);
  whole("--request-timeout-secs", c.request_timeout_s, "Longest time for a request with all its attempts", 1,
        86'400);
  whole("--prefill-timeout-secs", c.prefill_timeout_s,
        "With --pd-disaggregation: longest time for a prompt at a worker of --prefill; then one of --decode computes it",
        1, 86'400);
}

void add_server_flags(CLI::App& command, RouteCommand& c) {
  const char* group = "Server";
  fleet::RouterOptions& o = c.options;
  o.http.port = 30000;
  add_listen_flags(command, o.http, c.shutdown_grace_s);
  command
      .add_option("--api-key", o.api_keys,
                  "Keys that clients must show; the first one is shown to replicas for health and metrics")
      ->envname("OCTAVO_API_KEY")
      ->group(group);
  command
      .add_option("--tenants", c.tenants,
                  "File of tenants, YAML or JSON: name, keys, requestsPerSecond, burst and "
                  "maxConcurrentRequests of each")
      ->group(group);
  command.add_flag("!--no-page", o.page, "No web page at /")->group(group);
  command.add_option("--max-payload-size", o.http.body_bytes_max, "Bytes of the largest request body")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-concurrent-requests", o.max_concurrent_requests,
                  "Requests at a time, others wait (--queue-size) or get 429; -1: any number")
      ->check(CLI::Range(-1, 1'000'000))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--queue-size", o.queue.size,
          "Requests that wait while no replica has room, by `priority` and in turn among tenants; others get "
          "429. The router learns from 429 and 503 how many requests a replica takes; 0: none waits")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--queue-timeout-secs", o.queue.timeout_s,
                  "Longest wait for room; then 408, or the replica's own refusal")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--http-threads", o.http.threads,
                  "Threads; each serves its share of the clients and reads the replicas that answer them")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(group);
}

Result<> read_discovery(RouteCommand& c) {
  struct Source {
    const char* flag;
    const std::vector<std::string>& labels;
    fleet::Role role;
  };
  const Source sources[] = {{"selector", c.selector, fleet::Role::both},
                            {"prefill-selector", c.prefill_selector, fleet::Role::prefill},
                            {"decode-selector", c.decode_selector, fleet::Role::decode}};
  for (const Source& source : sources) {
    if (source.labels.empty()) continue;
    if (!c.service_discovery) return invalid(source.flag, "needs service-discovery");
    if ((source.role == fleet::Role::both) == c.options.disaggregated)
      return invalid(source.flag, "must {}be given with pd-disaggregation",
                     c.options.disaggregated ? "not " : "");
    fleet::KubePoolOptions pods;
    pods.ports.push_back(c.discovery_port);
    TRY(pods.api, kube_api(c.kube_api));
    pods.space = c.discovery_namespace.empty() ? pods.api.space : c.discovery_namespace;
    TRY_VOID(fleet::check_kube_name(pods.space, "service-discovery-namespace"));
    TRY(pods.selector,
        fleet::parse_label_selector(fmt::format("{}", fmt::join(source.labels, ",")), source.flag));
    c.options.discovered.push_back({source.role, std::move(pods)});
  }
  if (c.service_discovery && c.options.discovered.empty())
    return invalid("service-discovery", "needs selector, or prefill-selector and decode-selector");
  for (const auto& [flag, value] : {std::pair("worker-dns", &c.sources.dns), {"worker-srv", &c.sources.srv}})
    if (c.options.disaggregated && !value->empty())
      return invalid(flag, "must not be given with pd-disaggregation: its records have no roles");
  TRY(auto listed, read_sources(c.sources));
  for (auto& source : listed) c.options.discovered.push_back({{}, std::move(source)});
  for (fleet::DiscoveredWorkers& workers : c.options.discovered) workers.event_ports = c.sources.event_ports;
  return {};
}

Result<> route(RouteCommand& c) {
  StopSignals signals;

  fleet::RouterOptions& o = c.options;
  if (c.disable_retries) o.retry.attempts_max = 1;
  o.breaker.enabled = !c.disable_circuit_breaker;
  o.breaker.timeout_us = std::int64_t{1'000'000} * c.breaker_timeout_s;
  o.breaker.window_us = std::int64_t{1'000'000} * c.breaker_window_s;
  o.health_check_interval_ms = c.health_interval_s * 1000;
  o.health_check_timeout_ms = c.health_timeout_s * 1000;
  o.request_timeout_ms = c.request_timeout_s * 1000;
  o.prefill_timeout_ms = c.prefill_timeout_s * 1000;
  o.http.cors = http::CorsOptions{};
  if (!c.tokenizer_path.empty()) {
    auto tokenizer = load_tokenizer(c.tokenizer_path);
    if (!tokenizer) return invalid("tokenizer-path", "{}", tokenizer.error().message);
    o.tokenizer = std::make_shared<const Tokenizer>(*std::move(tokenizer));
  }
  if (!c.tenants.empty()) {
    TRY(o.tenants, fleet::read_tenants_file(c.tenants));
  }
  if (!c.warm_from.empty()) {
    auto url = http::parse_url(c.warm_from);
    if (!url || url->target != "/")
      return invalid("router-warm-from", "must be http://host:port or https://host:port, got {}",
                     quoted_text(c.warm_from));
    o.warm_from = *std::move(url);
  }
  TRY_VOID(read_discovery(c));
  const std::string policy = o.policy;
  const std::size_t named = o.worker_urls.size() + o.prefill_urls.size() + o.decode_urls.size();
  const std::string workers =
      o.discovered.empty() ? fmt::format("{} workers", named)
                           : fmt::format("{} workers and those that discovery finds", named);
  TRY(const auto router, fleet::Router::start(std::move(o)));
  log_info("routing by {} to {} on {}", policy, workers, router->address());

  signals.wait();
  log_info("stopping: answers in flight get up to {} s", c.shutdown_grace_s);
  router->stop(c.shutdown_grace_s * 1000);
  return {};
}

}  // namespace

void add_route(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand(
      "route", "Spread requests over many replicas, each where it is answered soonest");
  auto options = std::make_shared<RouteCommand>();
  add_routing_flags(*command, *options);
  add_discovery_flags(*command, *options);
  add_peer_flags(*command, *options);
  add_failure_flags(*command, *options);
  add_server_flags(*command, *options);
  command->callback([options, &outcome] {
    if (const auto routed = route(*options); !routed) outcome.report(routed.error());
  });
}

}  // namespace octavo
