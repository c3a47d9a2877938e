// octavo pick: the endpoint picker of an Envoy gateway.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/epp_flags.h"
#include "app/kube_flags.h"
#include "app/source_flags.h"
#include "app/stop_signals.h"
#include "app/tracing_flag.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/discover/endpoints.h"
#include "fleet/pick/pick_server.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

struct ConfigFlags {
  std::string file, text;
  bool experimental = false;  // allows plugins that are alpha in llm-d
};

struct ClusterFlags {
  std::string pool, space, group = fleet::KubePoolOptions().group;
  std::string selector, api;
  std::vector<int> ports;
  bool leader_election = false;
};

struct PickTimes {
  std::string refresh_metrics = "50ms", metrics_staleness = "2s", drain = "30s";
};

struct PickCommand {
  fleet::PickOptions options;
  ConfigFlags config;
  std::vector<std::string> endpoints;
  SourceFlags sources;
  std::vector<std::string> objectives;
  ClusterFlags cluster;
  PickTimes times;
  bool secure_serving = true;
  fleet::GrpcTls tls = {};
  std::string metrics_cert_dir;  // "": metrics are served without TLS
  std::string grpc_message_bytes;
  EppFlags epp;
  std::string traces_endpoint;
};

using fleet::PickOptions;
using PickFlag = FlagRow<PickCommand>;
fleet::ProcessorOptions& processor_of(PickCommand& c) { return c.options.processor; }
fleet::GrpcOptions& grpc_of(PickCommand& c) { return c.options.grpc; }
http::ServerOptions& metrics_of(PickCommand& c) { return c.options.metrics; }

constexpr PickFlag kPickFlags[] = {
    {"--config-file", flag::to<&PickCommand::config, &ConfigFlags::file>,
     "YAML file with an EndpointPickerConfig"},
    {"--config-text",
     flag::to<&PickCommand::config, &ConfigFlags::text>,
     "EndpointPickerConfig as YAML text",
     {},
     {.excludes = "--config-file"}},
    {"--endpoints", flag::to<&PickCommand::endpoints>,
     "Endpoints to pick among, each as ip:port. Without this flag the configuration needs a file-discovery "
     "plugin"},
    {"--allow-experimental-plugins", flag::to<&PickCommand::config, &ConfigFlags::experimental>,
     "Allow the configuration to use llm-d's alpha plugins"},
    {"!--disable-endpoint-subset-filter", flag::to<processor_of, &fleet::ProcessorOptions::subset_filter>,
     "Ignore the subset of endpoints that the gateway sends, and pick among all endpoints"},
    {"--objective", flag::to<&PickCommand::objectives>,
     "Priority of requests whose header x-llm-d-inference-objective is NAME, as NAME=PRIORITY. Requests with "
     "another value have priority 0. Can be given several times"},
    {"--emit-endpoint-scores", flag::to<processor_of, &fleet::ProcessorOptions::emit_scores>,
     "Send the scores of the picked endpoints to the gateway, as dynamic metadata"},
    {"--refresh-metrics-interval", flag::to<&PickCommand::times, &PickTimes::refresh_metrics>,
     "Time between two reads of an endpoint's metrics"},
    {"--metrics-staleness-threshold", flag::to<&PickCommand::times, &PickTimes::metrics_staleness>,
     "Time after which a metrics request without a reply fails. After three failures the endpoint gets no "
     "requests until it replies"},
};

constexpr FlagRow<ClusterFlags> kClusterFlags[] = {
    {"--pool-name", flag::to<&ClusterFlags::pool>, "Name of the InferencePool whose pods are the endpoints"},
    {"--pool-namespace", flag::to<&ClusterFlags::space>,
     "Namespace of the InferencePool and its pods (default: the picker's namespace)"},
    {"--pool-group", flag::to<&ClusterFlags::group>, "API group of the InferencePool"},
    {"--endpoint-selector",
     flag::to<&ClusterFlags::selector>,
     "Labels of the pods that are the endpoints, such as app=vllm; replaces --pool-name",
     {},
     {.excludes = "--pool-name"}},
    {"--endpoint-target-ports",
     flag::to<&ClusterFlags::ports>,
     "Ports of the pods of --endpoint-selector, such as 8000,8001; each port is a separate endpoint",
     flag::range(1, 65535),
     {.needs = "--endpoint-selector"}},
    {"--ha-enable-leader-election", flag::to<&ClusterFlags::leader_election>,
     "Elect one of several pickers as the leader with a Lease; only the leader is ready"},
};

constexpr PickFlag kPickServerFlags[] = {
    {"--host", flag::to<grpc_of, &fleet::GrpcOptions::host>, "Address to listen on"},
    {"--grpc-port", flag::to<grpc_of, &fleet::GrpcOptions::port>,
     "Port for the gateway (ext_proc); 0: any free port"},
    {"--grpc-health-port", flag::to<grpc_of, &fleet::GrpcOptions::health_port>,
     "Port for gRPC health checks; 0: any free port"},
    {"--metrics-port", flag::to<metrics_of, &http::ServerOptions::port>,
     "Port for GET /metrics; 0: any free port"},
    {"--metrics-cert-dir", flag::to<&PickCommand::metrics_cert_dir>,
     "Folder with tls.crt and tls.key; with it, --metrics-port serves https. Changed files are read again"},
    {"--metrics-client-ca-file",
     flag::to<metrics_of, &http::ServerOptions::tls, &http::TlsOptions::ca_certs>,
     "PEM file of authorities. Only clients with a certificate of one of them can read metrics",
     {},
     {.needs = "--metrics-cert-dir"}},
    {"--secure-serving", flag::to<&PickCommand::secure_serving>,
     "Serve ext_proc with TLS (default: on); --secure-serving=false turns it off"},
    {"--cert-path", flag::to<&PickCommand::tls, &fleet::GrpcTls::folder>,
     "Folder with tls.crt and tls.key (default: the picker makes a self-signed certificate)"},
    {"--enable-cert-reload",
     flag::to<&PickCommand::tls, &fleet::GrpcTls::refresh>,
     "Reload tls.crt and tls.key when they change",
     {},
     {.needs = "--cert-path"}},
    {"--grpc-max-recv-msg-size", flag::to<&PickCommand::grpc_message_bytes>,
     "Maximum size of a gRPC message, such as 10MiB (default: large enough for --max-payload-size)"},
    {"--max-payload-size", flag::to<processor_of, &fleet::ProcessorOptions::body_bytes_max>,
     "Maximum bytes of a request body; a larger body gets status 413",
     flag::range(std::uint64_t{1}, std::uint64_t{1} << 32)},
    {"--drain-timeout", flag::to<&PickCommand::times, &PickTimes::drain>,
     "Time that open streams have to end after SIGTERM"},
    {kTracesFlag, flag::to<&PickCommand::traces_endpoint>,
     "URL of a collector (OTLP) that gets a span for each decision: http://HOST:4318/v1/traces or "
     "grpc://HOST:4317"},
};

void add_pick_flags(CLI::App& command, PickCommand& c) {
  constexpr const char* kKubernetes = "Kubernetes";
  add_flags(command, c, "Picking", kPickFlags);
  add_flags(command, c.cluster, kKubernetes, kClusterFlags);
  CLI::Option* const ports = command.get_option("--endpoint-target-ports");
  ports->delimiter(',')->expected(1, static_cast<int>(fleet::kPoolPortsMax));
  command.get_option("--endpoint-selector")->needs(ports);
  add_kube_api_flag(command, kKubernetes, c.cluster.api);
  add_source_flags(command, c.sources);
  c.options.metrics.host = "0.0.0.0";
  c.options.metrics.port = 9090;
  add_flags(command, c, "Server", kPickServerFlags);
  add_epp_flags(command, c.epp);
}

Result<int> duration_ms(std::string_view field, const std::string& text, int min_ms) {
  const auto us = fleet::duration_us(text);
  if (!us || !(*us >= min_ms * 1e3 && *us <= 86'400e6))
    return invalid(field, "must be a duration like 50ms or 2s, from {} ms to a day", min_ms);
  return static_cast<int>(*us / 1000);
}

Result<std::string> config_text(const PickCommand& c) {
  if (c.config.file.empty()) return c.config.text;
  std::ifstream file(c.config.file, std::ios::binary);
  if (!file)
    return field_failure("config-file", ErrorCode::not_found, "cannot read the file {}", c.config.file);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<> read_cluster(PickCommand& c) {
  fleet::PickOptions& o = c.options;
  if (c.cluster.pool.empty() && c.cluster.selector.empty()) {
    if (c.cluster.leader_election)
      return invalid("ha-enable-leader-election", "needs --pool-name or --endpoint-selector");
    return {};
  }
  if (o.config.discovery || !o.endpoints.empty())
    return invalid(c.cluster.pool.empty() ? "endpoint-selector" : "pool-name",
                   "cannot be combined with --endpoints or file-discovery");
  if (!c.objectives.empty() && !c.cluster.pool.empty())
    return invalid(
        "objective",
        "cannot be combined with --pool-name: priorities come from the pool's InferenceObjectives");
  fleet::KubePoolOptions cluster;
  TRY(cluster.api, kube_api(c.cluster.api));
  cluster.space = c.cluster.space.empty() ? cluster.api.space : c.cluster.space;
  TRY_VOID(fleet::check_kube_name(cluster.space, "pool-namespace"));
  if (!c.cluster.pool.empty()) TRY_VOID(fleet::check_kube_name(c.cluster.pool, "pool-name"));
  TRY_VOID(fleet::check_kube_name(c.cluster.group, "pool-group"));
  cluster.pool = c.cluster.pool;
  cluster.group = c.cluster.group;
  TRY(cluster.selector, fleet::parse_label_selector(c.cluster.selector, "endpoint-selector"));
  cluster.ports = c.cluster.ports;
  if (c.cluster.leader_election)
    o.lease = fmt::format("epp-{}-{}.llm-d.ai", cluster.space,
                          c.cluster.pool.empty() ? "endpoints" : c.cluster.pool);
  o.kubernetes = std::move(cluster);
  return {};
}

// Parses "10MiB", "25MB", "1000000".
Result<> read_message_size(PickCommand& c) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  std::string_view text = c.grpc_message_bytes;
  if (text.empty()) return {};
  if (text.ends_with('B')) text.remove_suffix(1);
  const auto bytes = fleet::quantity(text);
  if (!bytes || *bytes < 1 || *bytes > kMost)
    return invalid("grpc-max-recv-msg-size", "must be a size like 10MiB, at most 4GiB, got {}",
                   quoted_text(c.grpc_message_bytes));
  c.options.grpc.message_bytes_max = *bytes;
  return {};
}

void read_metrics_tls(PickCommand& c) {
  if (c.metrics_cert_dir.empty()) return;
  http::TlsOptions& tls = c.options.metrics.tls;
  tls.certfile = c.metrics_cert_dir + "/tls.crt";
  tls.keyfile = c.metrics_cert_dir + "/tls.key";
  tls.refresh = true;
  if (!tls.ca_certs.empty()) tls.cert_reqs = 2;
}

Result<> read_options(PickCommand& c, int& drain_ms) {
  fleet::PickOptions& o = c.options;
  TRY_VOID(read_message_size(c));
  if (c.secure_serving) {
    o.grpc.tls = c.tls;
  } else if (!c.tls.folder.empty()) {
    return invalid("cert-path", "needs --secure-serving: remove --cert-path or --secure-serving=false");
  }
  TRY(const std::string text, config_text(c));
  TRY(o.config, fleet::parse_endpoint_picker_config(text, c.config.experimental));
  TRY_VOID(apply_epp_flags(c.epp, o.config));
  for (const std::string& address : c.endpoints) {
    auto endpoint = fleet::endpoint_of_address(address);
    if (!endpoint) return invalid("endpoints", "{}", endpoint.error().message);
    o.endpoints.push_back(*std::move(endpoint));
  }
  fleet::number_ranks(o.endpoints);
  for (const std::string& objective : c.objectives) {
    const std::size_t equals = std::min(objective.find('='), objective.size());
    const std::string number = objective.substr(std::min(equals + 1, objective.size()));
    const char* const end = number.data() + number.size();
    int priority = 0;
    const auto [read, error] = std::from_chars(number.data(), end, priority);
    if (equals == 0 || error != std::errc{} || read != end)
      return invalid("objective", "must be NAME=PRIORITY with a whole number, got {}",
                     quoted_text(objective));
    o.processor.rules.objectives[objective.substr(0, equals)] = priority;
  }
  TRY_VOID(read_cluster(c));
  TRY(o.sources, read_sources(c.sources));
  if (o.config.discovery && !o.endpoints.empty())
    return invalid("endpoints", "cannot be combined with a file-discovery plugin in the configuration");
  constexpr int kTickMsMin = 50;  // llm-d's minimum
  TRY(o.scrape_interval_ms, duration_ms("refresh-metrics-interval", c.times.refresh_metrics, kTickMsMin));
  TRY(o.scrape_timeout_ms, duration_ms("metrics-staleness-threshold", c.times.metrics_staleness, 1));
  TRY(drain_ms, duration_ms("drain-timeout", c.times.drain, 0));
  if (o.endpoints.empty() && !o.config.discovery && !o.kubernetes && o.sources.empty())
    return invalid("endpoints",
                   "no endpoints were given: use --endpoints, --pool-name, --endpoint-selector, another "
                   "source (--help), or a file-discovery plugin in the configuration");
  o.metrics.host = o.grpc.host;
  read_metrics_tls(c);
  TRY(o.processor.tracer, start_tracer(c.traces_endpoint, "octavo-pick"));
  return {};
}

Result<> pick(PickCommand& c) {
  StopSignals signals;

  int drain_ms = 0;
  TRY_VOID(read_options(c, drain_ms));
  const std::string host = c.options.grpc.host;
  TRY(const auto server, fleet::PickServer::start(std::move(c.options)));
  log_info("picking endpoints: ext_proc on {0}:{1}, health on {0}:{2}, metrics on {3}://{0}:{4}/metrics",
           host, server->grpc_port(), server->health_port(), c.metrics_cert_dir.empty() ? "http" : "https",
           server->metrics_port());

  signals.wait();
  log_info("stopping: open streams may take up to {} to end", c.times.drain);
  server->stop(drain_ms);
  return {};
}

}  // namespace

void add_pick(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("pick", "Pick the endpoint for each request of an Envoy gateway (ext_proc)");
  auto options = std::make_shared<PickCommand>();
  add_pick_flags(*command, *options);
  outcome.runs(*command, options, pick);
}

}  // namespace octavo
