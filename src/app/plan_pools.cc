// octavo plan pools: finds the traffic for which separate prefill replicas help.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/output_file.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "fleet/plan/pool_map.h"
#include "local/flag_table.h"
#include "local/progress.h"

namespace octavo {
namespace {

struct PlanPoolsCommand : SimulationFlags {
  std::vector<std::string> slo = {"ttft:2000", "tpot:50"};
  double share = 0.95;
  fleet::PoolMapRules rules;
  std::string output_json;
  std::string plot;
};

Result<> run_plan_pools(PlanPoolsCommand& c) {
  TRY(const traffic::Goodput limits, traffic::Goodput::parse(c.slo, "slo"));
  const fleet::Slo slo{limits, c.share};
  c.options.prefill.replicas = 1;  // at least one, so that describe_replica() describes prefill replicas, too
  TRY_VOID(describe_replica(c));
  ProgressBar bar("pools", "cells", 1);
  TRY(const std::vector<fleet::PoolCell> cells,
      map_pools(c.options, slo, c.rules, [&](std::size_t done, std::size_t all) { bar.show(done, all); }));
  bar.finish();
  fmt::print("{}", pool_map_text(cells));
  TRY_VOID(write_output("output-json", c.output_json,
                        boost::json::serialize(pool_map_json(cells, c.rules)) + "\n"));
  const std::string title =
      fmt::format("{} replicas: request rate of separate pools / of one pool ({}, {:g} %)", c.rules.replicas,
                  fmt::join(c.slo, " "), c.share * 100);
  return write_output("plot", c.plot, c.plot.empty() ? "" : pool_map_svg(title, cells, c.rules));
}

using PoolsFlag = FlagRow<PlanPoolsCommand>;
fleet::PoolMapRules& rules_of(PlanPoolsCommand& c) { return c.rules; }
constexpr Between<int> kMapTokens = flag::range(1, 1 << 20);

constexpr PoolsFlag kMapFlags[] = {
    {"--slo", flag::to<&PlanPoolsCommand::slo>,
     "Maximum times of a good request in milliseconds: ttft:2000 tpot:50 e2el:9000"},
    {"--share", flag::to<&PlanPoolsCommand::share>, "Minimum fraction of requests within the SLO",
     flag::range(0.01, 1.0)},
    {"--replicas", flag::to<rules_of, &fleet::PoolMapRules::replicas>,
     "Number of replicas; each division into prefill and decode replicas is tried", flag::range(2, 256)},
    {"--prompt-tokens",
     flag::to<rules_of, &fleet::PoolMapRules::prompt_tokens>,
     "Prompt lengths to simulate; each is a column of the result",
     kMapTokens,
     {.delimiter = ','}},
    {"--answer-tokens",
     flag::to<rules_of, &fleet::PoolMapRules::answer_tokens>,
     "Output lengths to simulate; each is a row of the result",
     kMapTokens,
     {.delimiter = ','}},
    {"--seconds", flag::to<rules_of, &fleet::PoolMapRules::seconds>,
     "Seconds of virtual time per rate; must be much longer than the limits in --slo",
     flag::range(1.0, 86'400.0)},
};

constexpr PoolsFlag kMapResultFlags[] = {
    {"--seed", flag::to<&PlanPoolsCommand::options, &fleet::SimulationOptions::seed>,
     "Seed of the random numbers; two runs with the same seed are identical"},
    {"--output-json", flag::to<&PlanPoolsCommand::output_json>, "File for the result (JSON)"},
    {"--plot", flag::to<&PlanPoolsCommand::plot>, "File for a chart of the result (SVG)"},
};

}  // namespace

void add_plan_pools(CLI::App& plan, Outcome& outcome) {
  CLI::App* command = plan.add_subcommand(
      "pools", "Find the prompt and output lengths for which separate prefill replicas pay off");
  auto options = std::make_shared<PlanPoolsCommand>();
  options->options.policy = "least_loaded";
  options->options.prefill.policy = "least_loaded";
  add_flags(*command, *options, "Map", kMapFlags);
  add_policy_flags(*command, "Map", options->options);
  add_prefill_flags(*command, "Map", *options);
  add_flags(*command, *options, "Map", kMapResultFlags);
  add_replica_flags(*command, *options);
  outcome.runs(*command, options, run_plan_pools);
}

}  // namespace octavo
