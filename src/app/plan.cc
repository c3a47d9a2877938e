// octavo plan: finds the number of replicas that traffic needs.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/autoscaler_flags.h"
#include "app/commands.h"
#include "app/output_file.h"
#include "app/plan_search.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "fleet/plan/forecast.h"
#include "fleet/plan/plan_report.h"
#include "local/flag_table.h"
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

std::string bar_label(std::string_view what, int replicas) {
  return fmt::format("{}, {} replicas", what, replicas);
}

Result<fleet::ScalingPlan> plan_scaling(const PlanCommand& c, const fleet::Trace& trace,
                                        const fleet::Slo& slo, int enough) {
  fleet::SimulationOptions options = c.options;
  TRY(const std::vector<double> loads, fleet::window_loads(trace, c.rules.window_us));
  ProgressBars bars;
  TRY(const fleet::CapacityTable capacity,
      fleet::measure_capacity(options, trace, slo, c.rules.window_us, enough,
                              [&](int replicas, std::size_t done, std::size_t all) {
                                bars.show(bar_label("capacity", replicas), done, all);
                              }));
  const std::vector<double> predicted = fleet::find_predictor(c.predictor)->predict(loads);
  fleet::ScalingPlan plan{.predictor = c.predictor,
                          .rules = c.rules,
                          .capacity = capacity.rows(),
                          .windows = plan_windows(loads, predicted, capacity, c.rules, enough),
                          .trial = {}};
  options.replicas = plan.windows.front().replicas;
  options.sizes = fleet_sizes(plan.windows, c.rules, trace.requests.front().arrival_us);
  options.startup_us = c.rules.startup_us;
  TRY(plan.trial, try_fleet(options, trace, slo, [&](int replicas, std::size_t done, std::size_t all) {
        bars.show(bar_label("scaled", replicas), done, all);
      }));
  return plan;
}

Result<> run_plan(PlanCommand& c) {
  fleet::ScalingRules& rules = c.rules;
  rules.window_us = c.window_s * std::int64_t{1'000'000};
  rules.scale_down_delay_us = c.scale_down_delay_s * std::int64_t{1'000'000};
  rules.startup_us = c.startup_s * std::int64_t{1'000'000};
  if (rules.replicas_min > rules.replicas_max)
    return invalid("min-replicas", "must be at most --max-replicas, which is {1}, got {0}",
                   rules.replicas_min, rules.replicas_max);
  if (c.window_s > 0 && c.startup_s > c.window_s)
    return invalid("startup-time", "must be at most --window, which is {} s", c.window_s);
  if (c.slo.empty()) return invalid("slo", "must be given, for example --slo ttft:2000 tpot:50");
  fleet::Slo slo{.limits = {}, .share = c.share};
  TRY(slo.limits, traffic::Goodput::parse(c.slo, "slo"));
  if (!c.search.devices.empty()) {
    TRY(const fleet::Trace trace, read_traffic(c));
    TRY(const std::string found, run_search(c.search, c, trace, slo, rules.replicas_max));
    return write_output("output-json", c.output_json, found);
  }
  TRY_VOID(describe_replica(c));
  TRY(const fleet::Trace trace, read_traffic(c));
  if (c.window_s > 0) TRY_VOID(fleet::window_loads(trace, rules.window_us));

  ProgressBars bars;
  TRY(fleet::Sizing sizing, size_fleet(c.options, trace, slo, rules.replicas_min, rules.replicas_max,
                                       [&](int replicas, std::size_t done, std::size_t all) {
                                         bars.show(bar_label("plan", replicas), done, all);
                                       }));
  fleet::Plan plan{.slo = slo, .sizing = std::move(sizing)};
  if (c.window_s > 0) {
    TRY(plan.scaling, plan_scaling(c, trace, slo, plan.sizing.replicas));
  }
  fmt::print("{}", plan_text(plan));
  return write_output("output-json", c.output_json, boost::json::serialize(plan_json(plan)) + "\n");
}

using PlanFlag = FlagRow<PlanCommand>;
constexpr Between<int> kFleetSizes = flag::range(1, static_cast<int>(fleet::kEndpointsMax));

constexpr PlanFlag kSloFlags[] = {
    {"--slo", flag::to<&PlanCommand::slo>,
     "Maximum times of a good request in milliseconds: ttft:2000 tpot:50 e2el:9000"},
    {"--share", flag::to<&PlanCommand::share>, "Minimum fraction of requests within the SLO",
     flag::range(0.01, 1.0)},
};

constexpr PlanFlag kFleetSizeFlags[] = {
    {"--min-replicas", flag::to<&PlanCommand::rules, &fleet::ScalingRules::replicas_min>,
     "Minimum number of replicas", kFleetSizes},
    {"--max-replicas", flag::to<&PlanCommand::rules, &fleet::ScalingRules::replicas_max>,
     "Maximum number of replicas", kFleetSizes},
    {"--output-json", flag::to<&PlanCommand::output_json>, "File for the plan (JSON)"},
};

constexpr PlanFlag kWindowFlag[] = {
    {"--window",
     flag::to<&PlanCommand::window_s>,
     "Seconds between two decisions of an autoscaler; also plans a number of replicas that changes over time",
     flag::range(1, 86'400),
     {.no_default = true}},
};

constexpr PlanFlag kDelayFlags[] = {
    {"--scale-down-delay", flag::to<&PlanCommand::scale_down_delay_s>,
     "Seconds for which a replica must be unnecessary before it is removed", flag::range(0, 3600)},
    {"--startup-time", flag::to<&PlanCommand::startup_s>,
     "Seconds from a decision until a new replica takes requests; at most --window", flag::range(0, 86'400)},
};

}  // namespace

void add_plan(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("plan",
                                             "Compute by simulation how many replicas recorded traffic needs "
                                             "to meet an SLO, and how this number changes over time");
  auto options = std::make_shared<PlanCommand>();
  add_flags(*command, *options, "Plan", kSloFlags);
  add_policy_flags(*command, "Plan", options->options);
  add_flags(*command, *options, "Plan", kFleetSizeFlags);
  add_flags(*command, *options, "Scaling", kWindowFlag);
  add_predictor_flag(*command, "Scaling", true, options->predictor);
  add_flags(*command, *options, "Scaling", kDelayFlags);
  add_traffic_flags(*command, *options);
  add_replica_flags(*command, *options);
  add_search_flags(*command, options->search, *options);
  add_plan_live(*command, outcome);
  add_plan_pools(*command, outcome);
  add_plan_compare(*command, outcome);
  outcome.runs(*command, options, run_plan);
}

}  // namespace octavo
