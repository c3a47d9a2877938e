// octavo plan live: an autoscaler of running replicas.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/stop_signals.h"
#include "base/log.h"
#include "fleet/decide/parameters.h"
#include "fleet/scale/connectors/command.h"
#include "fleet/scale/connectors/process.h"
#include "fleet/scale/planner.h"
#include "http/url.h"

namespace octavo {
namespace {

struct PlanLiveCommand {
  fleet::PlannerOptions options;
  std::vector<std::string> slo;
  std::string capacity;
  double tokens_per_second = 0;
  std::string window = "60s", interval = "5s", scale_down_delay = "300s";
  std::string predictor = "trend";

  std::string connector = "none";
  std::string command;
  std::string ports = "8100-8199";
  int startup_timeout_s = 600;
  int drain_timeout_s = 1800;
};

Result<std::int64_t> microseconds(std::string_view field, const std::string& text, double least_s) {
  constexpr double kDayUs = 86'400e6;
  const auto us = fleet::duration_us(text);
  if (us && *us >= least_s * 1e6 && *us <= kDayUs) return static_cast<std::int64_t>(*us);
  return invalid(field, "must be a duration like 5s or 500ms, from {} s to a day, got {:?}", least_s, text);
}

Result<> read_slo(PlanLiveCommand& c) {
  auto limits = traffic::Goodput::parse(c.slo);
  if (!limits) return invalid("slo", "{}", limits.error().message);
  if (limits->e2el_ms > 0)
    return field_failure("slo", ErrorCode::unsupported, "e2el is not watched: ttft and tpot are");
  c.options.rules.ttft_ms = limits->ttft_ms;
  c.options.rules.tpot_ms = limits->tpot_ms;
  return {};
}

Result<> read_capacity(PlanLiveCommand& c) {
  if (c.capacity.empty() == (c.tokens_per_second == 0))
    return invalid("capacity", "either --capacity or --tokens-per-second must say what replicas serve");
  if (c.capacity.empty()) {
    c.options.capacity = fleet::CapacityTable({{1, c.tokens_per_second}});
    return {};
  }
  TRY(c.options.capacity, fleet::read_capacity(c.capacity));
  return {};
}

// "8100-8199".
Result<> read_ports(const std::string& text, fleet::ProcessOptions& o) {
  const char* const end = text.data() + text.size();
  const auto [dash, first_error] = std::from_chars(text.data(), end, o.first_port);
  if (first_error == std::errc() && dash != end && *dash == '-') {
    const auto [rest, last_error] = std::from_chars(dash + 1, end, o.last_port);
    if (last_error == std::errc() && rest == end && o.first_port >= 1 && o.first_port <= o.last_port &&
        o.last_port <= 65'535)
      return {};
  }
  return invalid("ports", "must be a range like 8100-8199, got {:?}", text);
}

std::unique_ptr<fleet::Connector> nothing(int) { return std::make_unique<fleet::NoConnector>(); }

Result<fleet::MakeConnector> process_connector(const PlanLiveCommand& c) {
  fleet::ProcessOptions o{.command = c.command,
                          .router = c.options.urls.front(),
                          .api_key = c.options.api_key,
                          .startup_us = c.startup_timeout_s * std::int64_t{1'000'000},
                          .drain_us = c.drain_timeout_s * std::int64_t{1'000'000}};
  if (!o.command.contains("{port}"))
    return invalid("command", "must start a server on {{port}}, like: octavo serve MODEL --port {{port}}");
  if (c.options.urls.size() != 1)
    return invalid("url", "must be the one router that started servers are registered at, got {}",
                   c.options.urls.size());
  TRY_VOID(read_ports(c.ports, o));
  if (o.last_port - o.first_port + 1 < c.options.rules.scaling.replicas_max)
    return invalid("ports", "are fewer than the {} of max-replicas", c.options.rules.scaling.replicas_max);
  return [o](int) { return std::make_unique<fleet::ProcessConnector>(o); };
}

Result<fleet::MakeConnector> command_connector(const PlanLiveCommand& c) {
  if (!c.command.contains("{replicas}"))
    return invalid("command",
                   "must scale to {{replicas}}, like: kubectl scale deploy/model --replicas {{replicas}}");
  return [o = fleet::CommandOptions{.command = c.command}](int replicas) {
    return std::make_unique<fleet::CommandConnector>(o, replicas);
  };
}

constexpr struct {
  std::string_view name;
  std::string_view summary;
  Result<fleet::MakeConnector> (*make)(const PlanLiveCommand& c);
} kConnectors[] = {
    {"none", "decides and tells",
     [](const PlanLiveCommand&) -> Result<fleet::MakeConnector> { return nothing; }},
    {"process", "starts and ends servers here, behind the router", process_connector},
    {"command", "runs a command with the number", command_connector},
};

Result<> run_plan_live(PlanLiveCommand& c) {
  StopSignals signals;

  fleet::PlannerOptions& o = c.options;
  fleet::ScalingRules& scaling = o.rules.scaling;
  if (scaling.replicas_min > scaling.replicas_max)
    return invalid("min-replicas", "{} are more than the {} of max-replicas", scaling.replicas_min,
                   scaling.replicas_max);
  if (o.urls.empty()) return invalid("url", "a router or replicas must be given");
  for (const std::string& url : o.urls) TRY_VOID(http::parse_url(url));
  TRY_VOID(read_slo(c));
  TRY_VOID(read_capacity(c));
  TRY(scaling.window_us, microseconds("window", c.window, 1));
  TRY(const std::int64_t interval_us, microseconds("interval", c.interval, 0.1));
  o.interval_ms = static_cast<int>(interval_us / 1000);
  TRY(scaling.scale_down_delay_us, microseconds("scale-down-delay", c.scale_down_delay, 0));
  o.predictor = fleet::find_predictor(c.predictor);
  TRY(const fleet::MakeConnector connector,
      std::ranges::find(kConnectors, c.connector, [](const auto& one) { return one.name; })->make(c));
  const int grace_ms = c.drain_timeout_s * 1000;
  const std::string watched = fmt::format("{}", fmt::join(o.urls, ", "));
  TRY(const auto planner, fleet::Planner::start(std::move(o), connector));
  log_info("planning for {}, metrics on {}/metrics", watched, planner->address());

  signals.wait();
  log_info("stopping");
  planner->stop(grace_ms);
  return {};
}

void add_decision_flags(CLI::App& command, PlanLiveCommand& c) {
  const char* group = "Decisions";
  fleet::AutoscalerRules& rules = c.options.rules;
  rules.scaling.replicas_max = 8;
  const int most = static_cast<int>(fleet::kEndpointsMax);
  command
      .add_option("--url", c.options.urls,
                  "A router (octavo route), or the replicas, HOST:PORT or http(s)://HOST:PORT")
      ->group(group);
  command.add_option("--api-key", c.options.api_key, "Key to show to them")
      ->envname("OCTAVO_API_KEY")
      ->group(group);
  command
      .add_option("--capacity", c.capacity,
                  "What fleets serve: a file that octavo plan --window --output-json wrote")
      ->group(group);
  command
      .add_option("--tokens-per-second", c.tokens_per_second,
                  "What one replica serves, of prompts and answers, in place of --capacity")
      ->check(CLI::Range(0.001, 1e9))
      ->group(group);
  command
      .add_option("--slo", c.slo,
                  "What a good request meets, in milliseconds: ttft:2000 tpot:50; corrects the number")
      ->group(group);
  command.add_option("--share", c.options.share, "So large a share of the requests must be good")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str()
      ->group(group);
  command.add_option("--min-replicas", rules.scaling.replicas_min, "The smallest fleet")
      ->check(CLI::Range(1, most))
      ->capture_default_str()
      ->group(group);
  command.add_option("--max-replicas", rules.scaling.replicas_max, "The largest fleet")
      ->check(CLI::Range(1, most))
      ->capture_default_str()
      ->group(group);
  command.add_option("--window", c.window, "From one prediction of the load to the next")
      ->capture_default_str()
      ->group(group);
  command.add_option("--interval", c.interval, "From one reading of the replicas to the next")
      ->capture_default_str()
      ->group(group);
  std::vector<std::string> names;
  std::string text = "What the next window's load is taken to be";
  for (const fleet::Predictor& one : fleet::predictors()) {
    if (one.foresees) continue;
    names.emplace_back(one.name);
    text += fmt::format("; {}: {}", one.name, one.summary);
  }
  command.add_option("--predictor", c.predictor, text)
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--scale-down-delay", c.scale_down_delay,
                  "For so long a replica has not been needed when it is removed")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--down-sensitivity", rules.down_sensitivity,
          "A replica that was added for its latency may go when all latencies are below so large a share "
          "of the SLO")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
}

void add_connector_flags(CLI::App& command, PlanLiveCommand& c) {
  const char* group = "Connector";
  std::vector<std::string> names;
  std::string text = "Who makes the fleet as large";
  for (const auto& one : kConnectors) {
    names.emplace_back(one.name);
    text += fmt::format("; {}: {}", one.name, one.summary);
  }
  command.add_option("--connector", c.connector, text)
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--command", c.command,
                  "process: starts a server on {port} of this machine; command: scales to {replicas}")
      ->group(group);
  command.add_option("--ports", c.ports, "process: those that servers may have")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--startup-timeout", c.startup_timeout_s, "process: seconds until a server must be ready")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--drain-timeout", c.drain_timeout_s,
                  "process: seconds that the last requests of a server get that is no longer needed")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_plan_live(CLI::App& plan, Outcome& outcome) {
  CLI::App* command =
      plan.add_subcommand("live", "Watch running replicas, decide how many there shall be, and scale them");
  auto options = std::make_shared<PlanLiveCommand>();
  options->options.http.port = 9091;
  add_decision_flags(*command, *options);
  add_connector_flags(*command, *options);
  command->add_option("--host", options->options.http.host, "Address to listen on")
      ->capture_default_str()
      ->group("Server");
  command->add_option("--port", options->options.http.port, "Port for GET /metrics; any free one when 0")
      ->capture_default_str()
      ->group("Server");
  command->callback([options, &outcome] {
    if (const auto ran = run_plan_live(*options); !ran) outcome.report(ran.error());
  });
}

}  // namespace octavo
