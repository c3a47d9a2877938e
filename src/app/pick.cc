// octavo pick
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
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/discover/endpoints.h"
#include "fleet/pick/pick_server.h"

namespace octavo {
namespace {

struct PickCommand {
  fleet::PickOptions options;
  std::string config_file, config_text;
  std::vector<std::string> endpoints;
  SourceFlags sources;
  std::vector<std::string> objectives;
  std::string pool_name, pool_namespace, pool_group = fleet::KubePoolOptions().group;
  std::string endpoint_selector, kube_api;
  std::vector<int> endpoint_target_ports;
  bool leader_election = false;
  std::string refresh_metrics_interval = "50ms", metrics_staleness_threshold = "2s", drain_timeout = "30s";
  bool disable_subset_filter = false;
  bool experimental = false;
  bool secure_serving = true;
  fleet::GrpcTls tls = {};
  std::string grpc_message_bytes;
  EppFlags epp;
};

void add_pick_flags(CLI::App& command, PickCommand& c) {
  fleet::PickOptions& o = c.options;
  const char* group = "Picking";
  auto* file = command.add_option("--config-file", c.config_file, "EndpointPickerConfig, YAML");
  auto* text = command.add_option("--config-text", c.config_text, "The same as text");
  file->group(group)->excludes(text);
  text->group(group);
  command
      .add_option("--endpoints", c.endpoints,
                  "The endpoints, each as ip:port, where the configuration has no file-discovery")
      ->group(group);
  command
      .add_flag("--allow-experimental-plugins", c.experimental,
                "The configuration may name plugins that llm-d calls alpha")
      ->group(group);
  command
      .add_flag("--disable-endpoint-subset-filter", c.disable_subset_filter,
                "Pick among all endpoints, whatever subset the gateway names")
      ->group(group);
  command
      .add_option("--objective", c.objectives,
                  "Priority of requests whose header x-llm-d-inference-objective is NAME, as NAME=PRIORITY; "
                  "others have 0; "
                  "may be repeated")
      ->group(group);
  command
      .add_flag("--emit-endpoint-scores", o.processor.emit_scores,
                "Tell the gateway the scores of the endpoints picked, as dynamic metadata")
      ->group(group);
  const auto duration = [&](const char* name, std::string& value, const char* help) {
    command.add_option(name, value, help)->capture_default_str()->group(group);
  };
  duration("--refresh-metrics-interval", c.refresh_metrics_interval,
           "How often each endpoint's metrics are read");
  duration("--metrics-staleness-threshold", c.metrics_staleness_threshold,
           "Time without a reply after which a metrics request fails; after three failures the endpoint gets "
           "no requests until it replies");
}

void add_kubernetes_flags(CLI::App& command, PickCommand& c) {
  const char* group = "Kubernetes";
  const auto text = [&](const char* name, std::string& value, const char* help) {
    return command.add_option(name, value, help)->group(group);
  };
  auto* pool = text("--pool-name", c.pool_name, "The InferencePool whose pods are picked among");
  text("--pool-namespace", c.pool_namespace,
       "Its namespace, and that of its pods (default: the picker's own)");
  text("--pool-group", c.pool_group, "Its API group")->capture_default_str();
  auto* selector = text("--endpoint-selector", c.endpoint_selector,
                        "Pick among the pods with these labels, like app=vllm, without an InferencePool");
  auto* ports = command
                    .add_option("--endpoint-target-ports", c.endpoint_target_ports,
                                "Their ports, each a separate endpoint, like 8000,8001")
                    ->delimiter(',')
                    ->check(CLI::Range(1, 65535))
                    ->expected(1, static_cast<int>(fleet::kPoolPortsMax))
                    ->group(group);
  selector->excludes(pool)->needs(ports);
  ports->needs(selector);
  command
      .add_flag("--ha-enable-leader-election", c.leader_election,
                "Among several pickers for a pool, only the holder of a Lease is ready")
      ->group(group);
  add_kube_api_flag(command, group, c.kube_api);
}

void add_server_flags(CLI::App& command, PickCommand& c) {
  fleet::PickOptions& o = c.options;
  const char* group = "Server";
  o.metrics.host = "0.0.0.0";
  o.metrics.port = 9090;
  command.add_option("--host", o.grpc.host, "Address to listen on")->capture_default_str()->group(group);
  const auto port = [&](const char* name, std::uint16_t& value, const char* help) {
    command.add_option(name, value, help)->capture_default_str()->group(group);
  };
  port("--grpc-port", o.grpc.port, "Port for the gateway (ext_proc); any free one when 0");
  port("--grpc-health-port", o.grpc.health_port, "Port for gRPC health checks; any free one when 0");
  port("--metrics-port", o.metrics.port, "Port for GET /metrics; any free one when 0");
  command
      .add_flag("--secure-serving", c.secure_serving,
                "TLS for the gateway (ext_proc), on where nothing is said; --secure-serving=false: none")
      ->group(group);
  auto* certificates =
      command
          .add_option("--cert-path", c.tls.folder,
                      "Folder with tls.crt and tls.key; without it the certificate signs itself")
          ->group(group);
  command.add_flag("--enable-cert-reload", c.tls.refresh, "Read those files again when they change")
      ->needs(certificates)
      ->group(group);
  command
      .add_option("--grpc-max-recv-msg-size", c.grpc_message_bytes,
                  "Bytes of the largest message taken, like 10MiB (default: what --max-payload-size needs)")
      ->group(group);
  command
      .add_option("--max-payload-size", o.processor.body_bytes_max,
                  "Bytes of the largest request body: else 413")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str()
      ->group(group);
  command.add_option("--drain-timeout", c.drain_timeout, "Time for streams to finish after a signal to stop")
      ->capture_default_str()
      ->group(group);
}

Result<int> duration_ms(std::string_view field, const std::string& text, int min_ms) {
  const auto us = fleet::duration_us(text);
  if (!us || !(*us >= min_ms * 1e3 && *us <= 86'400e6))
    return invalid(field, "must be a duration like 50ms or 2s, from {} ms to a day", min_ms);
  return static_cast<int>(*us / 1000);
}

Result<std::string> config_text(const PickCommand& c) {
  if (c.config_file.empty()) return c.config_text;
  std::ifstream file(c.config_file, std::ios::binary);
  if (!file) return field_failure("config-file", ErrorCode::not_found, "{} cannot be read", c.config_file);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<> read_cluster(PickCommand& c) {
  fleet::PickOptions& o = c.options;
  if (c.pool_name.empty() && c.endpoint_selector.empty()) {
    if (c.leader_election)
      return invalid("ha-enable-leader-election", "needs pool-name or endpoint-selector");
    return {};
  }
  if (o.config.discovery || !o.endpoints.empty())
    return invalid(c.pool_name.empty() ? "endpoint-selector" : "pool-name",
                   "must not be given beside endpoints or file-discovery");
  if (!c.objectives.empty() && !c.pool_name.empty())
    return invalid("objective", "must not be given beside pool-name: the pool's InferenceObjectives count");
  fleet::KubePoolOptions cluster;
  TRY(cluster.api, kube_api(c.kube_api));
  cluster.space = c.pool_namespace.empty() ? cluster.api.space : c.pool_namespace;
  TRY_VOID(fleet::check_kube_name(cluster.space, "pool-namespace"));
  if (!c.pool_name.empty()) TRY_VOID(fleet::check_kube_name(c.pool_name, "pool-name"));
  TRY_VOID(fleet::check_kube_name(c.pool_group, "pool-group"));
  cluster.pool = c.pool_name;
  cluster.group = c.pool_group;
  TRY(cluster.selector, fleet::parse_label_selector(c.endpoint_selector, "endpoint-selector"));
  cluster.ports = c.endpoint_target_ports;
  if (c.leader_election)
    o.lease =
        fmt::format("epp-{}-{}.llm-d.ai", cluster.space, c.pool_name.empty() ? "endpoints" : c.pool_name);
  o.kubernetes = std::move(cluster);
  return {};
}

// "10MiB", "25MB", "1000000".
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

Result<> read_options(PickCommand& c, int& drain_ms) {
  fleet::PickOptions& o = c.options;
  TRY_VOID(read_message_size(c));
  if (c.secure_serving) {
    o.grpc.tls = c.tls;
  } else if (!c.tls.folder.empty()) {
    return invalid("cert-path", "must not be given without secure-serving");
  }
  TRY(const std::string text, config_text(c));
  TRY(o.config, fleet::parse_endpoint_picker_config(text, c.experimental));
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
      return invalid("objective", "must be NAME=PRIORITY, a whole number, got {}", quoted_text(objective));
    o.processor.rules.objectives[objective.substr(0, equals)] = priority;
  }
  TRY_VOID(read_cluster(c));
  TRY(o.sources, read_sources(c.sources));
  if (o.config.discovery && !o.endpoints.empty())
    return invalid("endpoints", "must not be given beside the configuration's file-discovery");
  constexpr int kTickMsMin = 50;  // llm-d's floor
  TRY(o.scrape_interval_ms, duration_ms("refresh-metrics-interval", c.refresh_metrics_interval, kTickMsMin));
  TRY(o.scrape_timeout_ms, duration_ms("metrics-staleness-threshold", c.metrics_staleness_threshold, 1));
  TRY(drain_ms, duration_ms("drain-timeout", c.drain_timeout, 0));
  o.processor.subset_filter = !c.disable_subset_filter;
  o.metrics.host = o.grpc.host;
  return {};
}

Result<> pick(PickCommand& c) {
  StopSignals signals;

  int drain_ms = 0;
  TRY_VOID(read_options(c, drain_ms));
  const std::string host = c.options.grpc.host;
  TRY(const auto server, fleet::PickServer::start(std::move(c.options)));
  log_info("picking endpoints: ext_proc on {0}:{1}, health on {0}:{2}, metrics on http://{0}:{3}/metrics",
           host, server->grpc_port(), server->health_port(), server->metrics_port());

  signals.wait();
  log_info("stopping: streams that are open get up to {}", c.drain_timeout);
  server->stop(drain_ms);
  return {};
}

}  // namespace

void add_pick(CLI::App& program, Outcome& outcome) {
  CLI::App* command =
      program.add_subcommand("pick", "Pick the endpoint for each request of an Envoy gateway (ext_proc)");
  auto options = std::make_shared<PickCommand>();
  add_pick_flags(*command, *options);
  add_kubernetes_flags(*command, *options);
  add_source_flags(*command, options->sources);
  add_server_flags(*command, *options);
  add_epp_flags(*command, options->epp);
  command->callback([options, &outcome] {
    if (const auto picked = pick(*options); !picked) outcome.report(picked.error());
  });
}

}  // namespace octavo
