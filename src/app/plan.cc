// octavo plan: finds the number of replicas that a given traffic needs.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/autoscaler_flags.h"
#include "app/commands.h"
#include "app/plan_search.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "fleet/plan/forecast.h"
#include "fleet/plan/plan_report.h"
#include "local/progress.h"

namespace octavo {
namespace {

struct PlanCommand : SimulationFlags {
  std::vector<std::string> slo;
  double share = 0.99;
  fleet::ScalingRules rules;
  int window_s = 0;
  int scale_down_delay_s = 300;
  int startup_s = 30;
  std::string predictor = "trend";
  std::string output_json;
  SearchFlags search;
};

Result<fleet::Slo> read_slo(const PlanCommand& c) {
  if (c.slo.empty()) return invalid("slo", "must be given: --slo ttft:2000 tpot:50");
  auto limits = traffic::Goodput::parse(c.slo);
  if (!limits) {
    limits.error().field = "slo";
    return std::unexpected(limits.error());
  }
  return fleet::Slo{*limits, c.share};
}

class Bars {
 public:
  explicit Bars(std::string what) : what_(std::move(what)) {}

  void show(int replicas, std::size_t done, std::size_t all) {
    if (replicas != replicas_) bar_.emplace(fmt::format("{}, {} replicas", what_, replicas), "requests", 1);
    replicas_ = replicas;
    bar_->show(done, all);
  }

 private:
  std::string what_;
  int replicas_ = 0;
  std::optional<ProgressBar> bar_;
};

Result<fleet::ScalingPlan> plan_scaling(const PlanCommand& c, const fleet::Trace& trace,
                                        const fleet::Slo& slo, int enough) {
  fleet::SimulationOptions options = c.options;
  TRY(const std::vector<double> loads, fleet::window_loads(trace, c.rules.window_us));
  Bars measured("capacity");
  TRY(const fleet::CapacityTable capacity,
      fleet::measure_capacity(
          options, trace, slo, c.rules.window_us, enough,
          [&](int replicas, std::size_t done, std::size_t all) { measured.show(replicas, done, all); }));
  const std::vector<double> predicted = fleet::find_predictor(c.predictor)->predict(loads);
  fleet::ScalingPlan plan{.predictor = c.predictor,
                          .rules = c.rules,
                          .capacity = capacity.rows(),
                          .windows = plan_windows(loads, predicted, capacity, c.rules, enough),
                          .trial = {}};
  options.replicas = plan.windows.front().replicas;
  options.sizes = fleet_sizes(plan.windows, c.rules, trace.requests.front().arrival_us);
  options.startup_us = c.rules.startup_us;
  Bars scaled("scaled");
  TRY(plan.trial, try_fleet(options, trace, slo, [&](int replicas, std::size_t done, std::size_t all) {
        scaled.show(replicas, done, all);
      }));
  return plan;
}

Result<> run_plan(PlanCommand& c) {
  fleet::ScalingRules& rules = c.rules;
  rules.window_us = c.window_s * std::int64_t{1'000'000};
  rules.scale_down_delay_us = c.scale_down_delay_s * std::int64_t{1'000'000};
  rules.startup_us = c.startup_s * std::int64_t{1'000'000};
  if (rules.replicas_min > rules.replicas_max)
    return invalid("min-replicas", "is {}, must be at most --max-replicas, {}", rules.replicas_min,
                   rules.replicas_max);
  if (c.window_s > 0 && c.startup_s > c.window_s)
    return invalid("startup-time", "must be at most --window, {} s", c.window_s);
  TRY(const fleet::Slo slo, read_slo(c));
  if (!c.search.devices.empty()) {
    TRY(const fleet::Trace trace, read_traffic(c));
    TRY(const std::string found, run_search(c.search, c, trace, slo, rules.replicas_max));
    return write_result("output-json", c.output_json, found);
  }
  TRY_VOID(describe_replica(c));
  TRY(const fleet::Trace trace, read_traffic(c));
  if (c.window_s > 0) TRY_VOID(fleet::window_loads(trace, rules.window_us));

  Bars tried("plan");
  TRY(fleet::Sizing sizing,
      size_fleet(c.options, trace, slo, rules.replicas_min, rules.replicas_max,
                 [&](int replicas, std::size_t done, std::size_t all) { tried.show(replicas, done, all); }));
  fleet::Plan plan{.slo = slo, .sizing = std::move(sizing)};
  if (c.window_s > 0) {
    TRY(plan.scaling, plan_scaling(c, trace, slo, plan.sizing.replicas));
  }
  fmt::print("{}", plan_text(plan));
  return write_result("output-json", c.output_json, boost::json::serialize(plan_json(plan)) + "\n");
}

void add_plan_flags(CLI::App& command, PlanCommand& c) {
  const char* group = "Plan";
  const int most = static_cast<int>(fleet::kEndpointsMax);
  command.add_option("--slo", c.slo, "Limits of a good request in milliseconds: ttft:2000 tpot:50 e2el:9000")
      ->group(group);
  command.add_option("--share", c.share, "Minimum share of good requests")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str()
      ->group(group);
  command.add_option("--policy", c.options.policy, policies_text())
      ->check(CLI::IsMember(policy_names()))
      ->capture_default_str()
      ->group(group);
  add_policy_flags(command, group, c.options.policy_options);
  command.add_option("--min-replicas", c.rules.replicas_min, "The smallest fleet")
      ->check(CLI::Range(1, most))
      ->capture_default_str()
      ->group(group);
  command.add_option("--max-replicas", c.rules.replicas_max, "The largest fleet")
      ->check(CLI::Range(1, most))
      ->capture_default_str()
      ->group(group);
  command.add_option("--output-json", c.output_json, "File for the plan")->group(group);
}

void add_scaling_flags(CLI::App& command, PlanCommand& c) {
  const char* group = "Scaling";
  command
      .add_option("--window", c.window_s,
                  "Also plan a changing number of replicas: seconds between two decisions")
      ->check(CLI::Range(1, 86'400))
      ->group(group);
  add_predictor_flag(command, group, true, c.predictor);
  command
      .add_option("--scale-down-delay", c.scale_down_delay_s,
                  "A replica is removed after it was not needed for this many seconds")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--startup-time", c.startup_s,
                  "Seconds from a decision until an added replica takes requests; at most a window")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_plan(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand(
      "plan",
      "Compute how many replicas recorded traffic needs to meet an SLO, now and over time, by "
      "simulation");
  auto options = std::make_shared<PlanCommand>();
  add_plan_flags(*command, *options);
  add_scaling_flags(*command, *options);
  add_traffic_flags(*command, *options);
  add_replica_flags(*command, *options);
  add_search_flags(*command, options->search, *options);
  add_plan_live(*command, outcome);
  add_plan_pools(*command, outcome);
  add_plan_compare(*command, outcome);
  command->callback([options, command, &outcome] {
    if (!command->get_subcommands().empty()) return;  // the subcommand has already run
    if (const auto done = run_plan(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
