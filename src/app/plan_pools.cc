// octavo plan pools: finds where separate prefill replicas help.
#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "fleet/plan/pool_map.h"
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
  auto limits = traffic::Goodput::parse(c.slo);
  if (!limits) return invalid("slo", "{}", limits.error().message);
  const fleet::Slo slo{*limits, c.share};
  c.options.prefill.replicas = 1;  // so that prefill replicas are described, too
  TRY_VOID(describe_replica(c));
  ProgressBar bar("pools", "cells", 1);
  TRY(const std::vector<fleet::PoolCell> cells,
      map_pools(c.options, slo, c.rules, [&](std::size_t done, std::size_t all) { bar.show(done, all); }));
  bar.finish();
  fmt::print("{}", pool_map_text(cells));
  TRY_VOID(write_result("output-json", c.output_json,
                        boost::json::serialize(pool_map_json(cells, c.rules)) + "\n"));
  const std::string title = fmt::format("{} replicas: apart over together ({}, {:g} %)", c.rules.replicas,
                                        fmt::join(c.slo, " "), c.share * 100);
  return write_result("plot", c.plot, c.plot.empty() ? "" : pool_map_svg(title, cells, c.rules));
}

void add_map_flags(CLI::App& command, PlanPoolsCommand& c) {
  const char* group = "Map";
  constexpr int kTokensMax = 1 << 20;
  command.add_option("--slo", c.slo, "Limits of a good request in milliseconds: ttft:2000 tpot:50 e2el:9000")
      ->capture_default_str()
      ->group(group);
  command.add_option("--share", c.share, "Minimum share of good requests")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--replicas", c.rules.replicas,
                  "Number of all replicas; each split into prefill and decode is tried")
      ->check(CLI::Range(2, 256))
      ->capture_default_str()
      ->group(group);
  command.add_option("--prompt-tokens", c.rules.prompt_tokens, "Lengths of prompts, a column each")
      ->check(CLI::Range(1, kTokensMax))
      ->delimiter(',')
      ->capture_default_str()
      ->group(group);
  command.add_option("--answer-tokens", c.rules.answer_tokens, "Lengths of answers, a row each")
      ->check(CLI::Range(1, kTokensMax))
      ->delimiter(',')
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--seconds", c.rules.seconds,
                  "Seconds of virtual time for each rate; much longer than the limits")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str()
      ->group(group);
  command.add_option("--policy", c.options.policy, policies_text())
      ->check(CLI::IsMember(policy_names()))
      ->capture_default_str()
      ->group(group);
  add_policy_flags(command, group, c.options.policy_options);
  add_prefill_flags(command, group, c);
  command.add_option("--seed", c.options.seed, "Seed of all random draws; runs with the same seed are identical")
      ->capture_default_str()
      ->group(group);
  command.add_option("--output-json", c.output_json, "File for the map")->group(group);
  command.add_option("--plot", c.plot, "File for a picture of it, SVG")->group(group);
}

}  // namespace

void add_plan_pools(CLI::App& plan, Outcome& outcome) {
  CLI::App* command = plan.add_subcommand(
      "pools", "Find the prompt and output lengths for which separate prefill replicas pay off");
  auto options = std::make_shared<PlanPoolsCommand>();
  options->options.policy = "least_loaded";
  options->options.prefill.policy = "least_loaded";
  add_map_flags(*command, *options);
  add_replica_flags(*command, *options);
  command->callback([options, &outcome] {
    if (const auto done = run_plan_pools(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
