// octavo plan live: autoscales running replicas.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "app/autoscaler_flags.h"
#include "app/commands.h"
#include "app/kube_flags.h"
#include "app/stop_signals.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/autoscale/connectors/command.h"
#include "fleet/autoscale/connectors/kubernetes.h"
#include "fleet/autoscale/connectors/process.h"
#include "fleet/autoscale/planner.h"
#include "http/url.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

struct PlanLiveCommand {
  fleet::PlannerOptions options;
  AutoscalerFlags decisions;

  std::string connector = "none";
  std::string command;
  std::string pool;
  std::string workload, kube_api, kube_space;
  std::string ports = "8100-8199";
  int startup_timeout_s = 600;
  int drain_timeout_s = 1800;
};

// Parses a range such as "8100-8199".
Result<> read_ports(const std::string& text, fleet::ProcessOptions& o) {
  const char* const end = text.data() + text.size();
  const auto [dash, first_error] = std::from_chars(text.data(), end, o.first_port);
  if (first_error == std::errc() && dash != end && *dash == '-') {
    const auto [rest, last_error] = std::from_chars(dash + 1, end, o.last_port);
    if (last_error == std::errc() && rest == end && o.first_port >= 1 && o.first_port <= o.last_port &&
        o.last_port <= 65'535)
      return {};
  }
  return invalid("ports", "must be a range like 8100-8199, got {}", quoted_text(text));
}

using MadeConnector = Result<std::unique_ptr<fleet::Connector>>;

MadeConnector no_connector(const PlanLiveCommand&) { return std::make_unique<fleet::NoConnector>(); }

MadeConnector process_connector(const PlanLiveCommand& c) {
  fleet::ProcessOptions o{.command = c.command,
                          .api_key = c.options.api_key,
                          .role = c.options.pool == fleet::Pool::both      ? fleet::Role::both
                                  : c.options.pool == fleet::Pool::prefill ? fleet::Role::prefill
                                                                           : fleet::Role::decode,
                          .startup_us = c.startup_timeout_s * std::int64_t{1'000'000},
                          .drain_us = c.drain_timeout_s * std::int64_t{1'000'000}};
  if (!o.command.contains("{port}"))
    return invalid("command", "must start a server on {{port}}, like: octavo serve MODEL --port {{port}}");
  if (c.options.urls.size() != 1)
    return invalid("url", "must be exactly one router, with which the started servers register, got {}",
                   c.options.urls.size());
  TRY(o.router, http::parse_url(c.options.urls.front()));
  TRY_VOID(read_ports(c.ports, o));
  if (o.last_port - o.first_port + 1 < c.options.rules.scaling.replicas_max)
    return invalid("ports", "must have at least {} ports: one for each server (--max-replicas)",
                   c.options.rules.scaling.replicas_max);
  return std::make_unique<fleet::ProcessConnector>(std::move(o));
}

MadeConnector command_connector(const PlanLiveCommand& c) {
  if (!c.command.contains("{replicas}"))
    return invalid("command",
                   "must scale to {{replicas}}, like: kubectl scale deploy/model --replicas {{replicas}}");
  return std::make_unique<fleet::CommandConnector>(fleet::CommandOptions{.command = c.command});
}

MadeConnector kubernetes_connector(const PlanLiveCommand& c) {
  fleet::KubeScaleOptions o;
  TRY(o.api, kube_api(c.kube_api));
  TRY(o.path, fleet::kube_workload_path(c.workload, c.kube_space.empty() ? o.api.space : c.kube_space));
  return std::make_unique<fleet::KubernetesConnector>(std::move(o));
}

// Each pool has a part of the SLO: TTFT for prefill, TPOT for decode.
Result<> read_pool(const PlanLiveCommand& c, const AutoscalerSetup& setup, fleet::PlannerOptions& o) {
  if (c.pool.empty()) return {};
  if (setup.rules.scaling.replicas_min == 0)
    return invalid("min-replicas",
                   "must be at least 1 with --pool, because a pool without workers has no queue");
  const fleet::Slo& slo = setup.slo;
  const bool prefill = c.pool == "prefill";
  if (prefill ? slo.limits.tpot_ms > 0 : slo.limits.ttft_ms > 0)
    return invalid("slo", "a {} pool can only have a limit for {}: remove {}", c.pool,
                   prefill ? "ttft" : "tpot", prefill ? "tpot" : "ttft");
  o.pool = prefill ? fleet::Pool::prefill : fleet::Pool::decode;
  return {};
}

constexpr struct {
  std::string_view name;
  std::string_view summary;
  MadeConnector (*make)(const PlanLiveCommand& c);
} kConnectors[] = {
    {"none", "prints its decisions and changes nothing", no_connector},
    {"process", "starts and stops servers on this machine, and registers them with the router",
     process_connector},
    {"command", "runs --command with the number of replicas", command_connector},
    {"kubernetes", "sets the scale of --kube-workload", kubernetes_connector},
};

Result<> run_plan_live(PlanLiveCommand& c) {
  StopSignals signals;

  fleet::PlannerOptions& o = c.options;
  if (o.urls.empty()) return invalid("url", "must name a router or replicas");
  for (const std::string& url : o.urls) TRY_VOID(http::parse_url(url));
  TRY(AutoscalerSetup setup, autoscaler_setup(c.decisions));
  TRY_VOID(read_pool(c, setup, o));
  o.rules = setup.rules;
  o.share = setup.slo.share;
  o.capacity = std::move(setup.capacity);
  o.predictor = setup.predictor;
  o.interval_ms = static_cast<int>(setup.interval_us / 1000);
  TRY(auto connector,
      std::ranges::find(kConnectors, c.connector, [](const auto& one) { return one.name; })->make(c));
  const int grace_ms = c.drain_timeout_s * 1000;
  const std::string watched = fmt::format("{}", fmt::join(o.urls, ", "));
  TRY(const auto planner, fleet::Planner::start(std::move(o), std::move(connector)));
  log_info("planning for {}, metrics on {}/metrics", watched, planner->address());

  signals.wait();
  log_info("stopping");
  planner->stop(grace_ms);
  return {};
}

using LiveFlag = FlagRow<PlanLiveCommand>;
using fleet::PlannerOptions;

constexpr LiveFlag kDecisionFlags[] = {
    {"--url", flag::to<&PlanLiveCommand::options, &PlannerOptions::urls>,
     "A router (octavo route) or the replicas to scale, as HOST:PORT or http(s)://HOST:PORT"},
    {"--api-key",
     flag::to<&PlanLiveCommand::options, &PlannerOptions::api_key>,
     "API key to send to the router or the replicas",
     {},
     {.environment = "OCTAVO_API_KEY"}},
    {"--pool", flag::to<&PlanLiveCommand::pool>,
     "Type of the router's workers to scale; run one planner for each pool", OneOf{"prefill|decode"}},
};

std::vector<std::string> connector_names() {
  std::vector<std::string> names;
  for (const auto& one : kConnectors) names.emplace_back(one.name);
  return names;
}

std::string connectors_text() {
  std::string text = "How to scale the fleet";
  for (const auto& one : kConnectors) text += fmt::format("; {}: {}", one.name, one.summary);
  return text;
}

constexpr LiveFlag kConnectorFlags[] = {
    {"--connector", flag::to<&PlanLiveCommand::connector>, connectors_text, OneOfList{connector_names}},
    {"--command", flag::to<&PlanLiveCommand::command>,
     "For process: command that starts a server on {port} of this machine. For command: command that scales "
     "to {replicas}"},
    {"--kube-workload", flag::to<&PlanLiveCommand::workload>,
     "For kubernetes: workload to scale, as deployment/NAME, statefulset/NAME, replicaset/NAME or "
     "GROUP/VERSION/PLURAL/NAME"},
    {"--kube-namespace", flag::to<&PlanLiveCommand::kube_space>,
     "For kubernetes: namespace of the workload (default: the namespace of this pod)"},
};

constexpr LiveFlag kConnectorProcessFlags[] = {
    {"--ports", flag::to<&PlanLiveCommand::ports>, "For process: range of ports for the servers"},
    {"--startup-timeout", flag::to<&PlanLiveCommand::startup_timeout_s>,
     "For process: maximum number of seconds until a server is ready", flag::range(1, 86'400)},
    {"--drain-timeout", flag::to<&PlanLiveCommand::drain_timeout_s>,
     "For process: maximum number of seconds for the last requests of a server that is to be stopped",
     flag::range(0, 86'400)},
};

constexpr FlagRow<http::ServerOptions> kPlannerFlags[] = {
    {"--host", flag::to<&http::ServerOptions::host>, "Address to listen on"},
    {"--port", flag::to<&http::ServerOptions::port>, "Port for GET /metrics; 0: any free port"},
};

}  // namespace

void add_plan_live(CLI::App& plan, Outcome& outcome) {
  CLI::App* command = plan.add_subcommand(
      "live", "Scale running replicas: read their load, predict it, and change their number");
  auto options = std::make_shared<PlanLiveCommand>();
  options->options.http.port = 9091;
  options->decisions.rules.scaling.replicas_max = 8;
  add_flags(*command, *options, "Decisions", kDecisionFlags);
  add_autoscaler_flags(*command, "Decisions", options->decisions);
  add_flags(*command, *options, "Connector", kConnectorFlags);
  add_kube_api_flag(*command, "Connector", options->kube_api);
  add_flags(*command, *options, "Connector", kConnectorProcessFlags);
  add_flags(*command, options->options.http, "Server", kPlannerFlags);
  outcome.runs(*command, options, run_plan_live);
}

}  // namespace octavo
