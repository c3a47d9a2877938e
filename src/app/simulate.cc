// octavo simulate: simulates a fleet of replicas.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/output_file.h"
#include "app/policy_flags.h"
#include "app/simulation_flags.h"
#include "base/clock.h"
#include "fleet/pick/endpoint_picker_config.h"
#include "fleet/simulate/charts.h"
#include "fleet/simulate/report.h"
#include "local/flag_table.h"
#include "local/progress.h"
#include "text/tokenizer_config.h"

namespace octavo {
namespace {

constexpr std::size_t kConfigBytesMax = 1 << 20;

struct SimulateCommand : SimulationFlags {
  std::vector<std::string> policies = {"round_robin", "cache_aware"};
  std::vector<std::string> picker_configs;
  std::vector<std::string> goodput;
  std::vector<double> percentiles = {90, 99};
  std::string output_json;
  std::string plot;
};

struct NamedPolicy {
  std::string name;
  // set if a picker's configuration defines the policy
  std::optional<fleet::PipelineConfig> pipeline = {};
};

// Returns the router's policies, then those of picker configurations, which have the names of their files.
Result<std::vector<NamedPolicy>> read_policies(const SimulateCommand& c) {
  std::vector<NamedPolicy> policies;
  for (const std::string& name : c.policies) policies.push_back({name});
  for (const std::string& path : c.picker_configs) {
    const auto yaml = read_text_file(path, kConfigBytesMax);
    if (!yaml) return field_failure("picker-config", yaml.error().code, "{}", yaml.error().message);
    auto config = fleet::parse_endpoint_picker_config(*yaml);
    if (!config)
      return field_failure("picker-config", config.error().code, "{}: {}", path, config.error().message);
    if (config->flow)
      return field_failure("picker-config", ErrorCode::unsupported, "{}: flow control is not simulated",
                           path);
    policies.push_back({std::filesystem::path(path).stem().string(), std::move(config->pipeline)});
  }
  return policies;
}

Result<> run_simulate(SimulateCommand& c) {
  TRY(const traffic::Goodput goodput, traffic::Goodput::parse(c.goodput));
  TRY_VOID(describe_replica(c));
  TRY(const fleet::Trace trace, read_traffic(c));

  std::vector<boost::json::object> reports;
  std::vector<fleet::NamedResult> results;
  TRY(std::vector<NamedPolicy> policies, read_policies(c));
  for (auto& [policy, pipeline] : policies) {
    c.options.policy = policy;
    c.options.pipeline = std::move(pipeline);
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
  TRY_VOID(write_output("output-json", c.output_json,
                        boost::json::serialize(boost::json::array(reports.begin(), reports.end())) + "\n"));
  const std::string title = fmt::format(
      "{}, {} replicas", std::filesystem::path(c.trace + c.traffic).filename().string(), c.options.replicas);
  return write_output("plot", c.plot, c.plot.empty() ? "" : svg_plot(title, charts(results)));
}

using SimulateFlag = FlagRow<SimulateCommand>;
using fleet::SimulationOptions;
constexpr int kSimulatedMost = static_cast<int>(fleet::kEndpointsMax);

std::string all_policies_text() { return policies_text() + "; with several policies, each is simulated"; }

constexpr SimulateFlag kFleetFlags[] = {
    {"--replicas", flag::to<&SimulateCommand::options, &SimulationOptions::replicas>, "Number of replicas",
     flag::range(1, kSimulatedMost)},
    {"--slowdown",
     flag::to<&SimulateCommand::options, &SimulationOptions::slowdowns>,
     "Factors for the step times of the first replicas; 8 makes the first replica 8 times slower",
     flag::range(0.01, 1000.0),
     {.delimiter = ','}},
    {"--policy", flag::to<&SimulateCommand::policies>, all_policies_text, OneOfList{policy_names}},
    {"--picker-config", flag::to<&SimulateCommand::picker_configs>,
     "Configuration files of `octavo pick` (YAML) to simulate as well; each appears in the result under its "
     "file name"},
    {"--kv-events", flag::to<&SimulateCommand::options, &SimulationOptions::kv_events>,
     "Let replicas publish KV cache events, which kv_aware uses"},
};

constexpr SimulateFlag kPrefillFlag[] = {
    {"--prefill-replicas",
     flag::to<&SimulateCommand::options, &SimulationOptions::prefill, &fleet::PrefillPool::replicas>,
     "Number of additional replicas that only compute prompts; the other replicas fetch their KV blocks. 0: "
     "none",
     flag::range(0, kSimulatedMost)},
};

constexpr SimulateFlag kResultFlags[] = {
    {"--goodput", flag::to<&SimulateCommand::goodput>,
     "Maximum times of a good request in milliseconds: ttft:500 tpot:50 e2el:9000"},
    {"--metric-percentiles",
     flag::to<&SimulateCommand::percentiles>,
     "Percentiles of all times to report",
     flag::range(0.0, 100.0),
     {.delimiter = ','}},
    {"--output-json", flag::to<&SimulateCommand::output_json>,
     "File for the results as JSON, a list with one object per policy"},
    {"--plot", flag::to<&SimulateCommand::plot>, "File for a chart of the results (SVG)"},
};

}  // namespace

void add_simulate(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand("simulate",
                                             "Simulate a fleet with recorded traffic, in virtual time and "
                                             "without a GPU; uses the code of the real router and scheduler");
  auto options = std::make_shared<SimulateCommand>();
  add_traffic_flags(*command, *options);
  add_flags(*command, *options, "Fleet", kFleetFlags);
  add_policy_flags(*command, "Fleet", options->options.policy_options);
  add_flags(*command, *options, "Separate prefill and decode replicas", kPrefillFlag);
  add_prefill_flags(*command, "Separate prefill and decode replicas", *options);
  add_replica_flags(*command, *options);
  add_flags(*command, *options, "Results", kResultFlags);
  add_calibrate(*command, outcome);
  outcome.runs(*command, options, run_simulate);
}

}  // namespace octavo
