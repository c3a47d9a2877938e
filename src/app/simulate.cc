// octavo simulate
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "base/clock.h"
#include "fleet/simulate/charts.h"
#include "fleet/simulate/report.h"
#include "local/progress.h"

namespace octavo {
namespace {

struct SimulateCommand : SimulationFlags {
  std::vector<std::string> policies = {"round_robin", "cache_aware"};
  std::vector<std::string> goodput;
  std::vector<double> percentiles = {90, 99};
  std::string output_json;
  std::string plot;
};

Result<> run_simulate(SimulateCommand& c) {
  TRY(const traffic::Goodput goodput, traffic::Goodput::parse(c.goodput));
  TRY_VOID(describe_replica(c));
  TRY(const fleet::Trace trace, read_traffic(c));

  std::vector<boost::json::object> reports;
  std::vector<fleet::NamedResult> results;
  for (const std::string& policy : c.policies) {
    c.options.policy = policy;
    ProgressBar bar(policy, "requests", 1);
    const std::int64_t began_us = now_us();
    TRY(fleet::SimulationResult result,
        simulate(c.options, trace, [&](std::size_t done, std::size_t all) { bar.show(done, all); }));
    bar.finish();
    const double seconds = static_cast<double>(now_us() - began_us) * 1e-6;
    fmt::print(stderr, "{}: {} requests in {:.1f} s, {:.0f} a second; {:.0f} times as fast as the fleet\n",
               policy, trace.requests.size(), seconds, static_cast<double>(trace.requests.size()) / seconds,
               static_cast<double>(result.duration_us) * 1e-6 / seconds);
    reports.push_back(report(c.options, result, goodput, c.percentiles));
    results.push_back({policy, std::move(result)});
  }
  fmt::print("{}", fleet::report_table(reports));
  TRY_VOID(write_result("output-json", c.output_json,
                        boost::json::serialize(boost::json::array(reports.begin(), reports.end())) + "\n"));
  const std::string title =
      fmt::format("{}, {} replicas", std::filesystem::path(c.trace + c.traffic).filename().string(), c.options.replicas);
  return write_result("plot", c.plot, c.plot.empty() ? "" : svg_plot(title, charts(results)));
}

void add_fleet_flags(CLI::App& command, SimulateCommand& c) {
  const char* group = "Fleet";
  command.add_option("--replicas", c.options.replicas, "Replicas behind the router")
      ->check(CLI::Range(1, static_cast<int>(fleet::kEndpointsMax)))
      ->capture_default_str()
      ->group(group);
  command.add_option("--policy", c.policies, policies_text() + "; each that is named is simulated")
      ->check(CLI::IsMember(policy_names()))
      ->capture_default_str()
      ->group(group);
  add_policy_flags(command, group, c.options.policy_options);
}

void add_result_flags(CLI::App& command, SimulateCommand& c) {
  const char* group = "Results";
  command
      .add_option("--goodput", c.goodput,
                  "What a good request meets, in milliseconds: ttft:500 tpot:50 e2el:9000")
      ->group(group);
  command.add_option("--metric-percentiles", c.percentiles, "Percentiles of all times")
      ->check(CLI::Range(0.0, 100.0))
      ->delimiter(',')
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--output-json", c.output_json,
                  "File for the results: a list with an object for each policy")
      ->group(group);
  command.add_option("--plot", c.plot, "File for a picture of the results, SVG")->group(group);
}

}  // namespace

void add_simulate(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand(
      "simulate", "A fleet under recorded traffic in virtual time: the real router and schedulers, no GPU");
  auto options = std::make_shared<SimulateCommand>();
  add_traffic_flags(*command, *options);
  add_fleet_flags(*command, *options);
  add_replica_flags(*command, *options);
  add_result_flags(*command, *options);
  add_calibrate(*command, outcome);
  command->callback([options, command, &outcome] {
    if (!command->get_subcommands().empty()) return;  // it has done its work
    if (const auto done = run_simulate(*options); !done) outcome.report(done.error());
  });
}

}  // namespace octavo
