// octavo plan compare: compares autoscalers with the same traffic.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <memory>
#include <string>

#include "app/autoscaler_flags.h"
#include "app/commands.h"
#include "app/output_file.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "fleet/plan/comparison.h"
#include "local/flag_table.h"
#include "local/progress.h"

namespace octavo {
namespace {

struct PlanCompareCommand : SimulationFlags {
  AutoscalerFlags decisions;
  int startup_s = 30;
  std::string output_json;
};

Result<> run_plan_compare(PlanCompareCommand& c) {
  TRY(const AutoscalerSetup setup, autoscaler_setup(c.decisions));
  if (setup.rules.scaling.replicas_min < 1)
    return invalid("min-replicas",
                   "must be at least 1, because a fleet without replicas cannot be simulated");
  if (!setup.slo.limits.limited())
    return invalid("slo", "must be given, for example --slo ttft:2000 tpot:50");
  fleet::ComparisonRules rules{setup.rules, setup.interval_us};
  rules.autoscaler.scaling.startup_us = c.startup_s * std::int64_t{1'000'000};
  TRY_VOID(describe_replica(c));
  TRY(const fleet::Trace trace, read_traffic(c));
  TRY_VOID(fleet::window_loads(trace, setup.rules.scaling.window_us));
  ProgressBars bars;
  TRY(const std::vector<fleet::Contender> contenders,
      fleet::compare_scalers(
          c.options, trace, setup.slo, rules, setup.capacity, *setup.predictor,
          [&](const std::string& who, std::size_t done, std::size_t all) { bars.show(who, done, all); }));
  fmt::print("{}", comparison_text(contenders));
  return write_output("output-json", c.output_json,
                      boost::json::serialize(comparison_json(contenders)) + "\n");
}

constexpr FlagRow<PlanCompareCommand> kCompareFlags[] = {
    {"--startup-time", flag::to<&PlanCompareCommand::startup_s>,
     "Seconds from a decision until a new replica takes requests", flag::range(0, 86'400)},
    {"--output-json", flag::to<&PlanCompareCommand::output_json>, "File to which the comparison is written"},
};

}  // namespace

void add_plan_compare(CLI::App& plan, Outcome& outcome) {
  CLI::App* command = plan.add_subcommand(
      "compare",
      "Compare the autoscaler of `plan live` with an oracle, a fixed fleet and an HPA, by simulation");
  auto options = std::make_shared<PlanCompareCommand>();
  options->options.policy = "least_loaded";
  const char* group = "Decisions";
  options->decisions.rules.scaling.replicas_max = 256;
  add_autoscaler_flags(*command, group, options->decisions);
  add_flags(*command, *options, group, kCompareFlags);
  add_policy_flags(*command, group, options->options);
  add_traffic_flags(*command, *options);
  add_replica_flags(*command, *options);
  outcome.runs(*command, options, run_plan_compare);
}

}  // namespace octavo
