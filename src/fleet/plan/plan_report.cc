#include "fleet/plan/plan_report.h"

#include <algorithm>
#include <boost/json/array.hpp>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

double seconds(std::int64_t us) { return static_cast<double>(us) * 1e-6; }

json::object trial_json(const Trial& trial) {
  json::object out = trial.figures;
  out["meets_slo"] = trial.meets_slo;
  return out;
}

json::object scaling_json(const ScalingPlan& scaling) {
  const ScalingRules& rules = scaling.rules;
  json::array capacity, windows;
  for (const Capacity& row : scaling.capacity)
    capacity.push_back({{"replicas", row.replicas}, {"tokens_per_second", row.load}});
  for (const WindowPlan& window : scaling.windows)
    windows.push_back({{"start_s", static_cast<double>(windows.size()) * seconds(rules.window_us)},
                       {"tokens_per_second", window.load},
                       {"predicted_tokens_per_second", window.predicted},
                       {"needed_replicas", window.needed},
                       {"replicas", window.replicas}});
  return {{"predictor", scaling.predictor},
          {"window_s", seconds(rules.window_us)},
          {"scale_down_delay_s", seconds(rules.scale_down_delay_us)},
          {"startup_s", seconds(rules.startup_us)},
          {"min_replicas", rules.replicas_min},
          {"max_replicas", rules.replicas_max},
          {"capacity", std::move(capacity)},
          {"windows", std::move(windows)},
          {"figures", trial_json(scaling.trial)}};
}

std::string row(std::string_view replicas, const Trial& trial) {
  const auto number = [&](const char* name) { return trial.figures.at(name).to_number<double>(); };
  return fmt::format("{:>10}{:>9.2f} %{:>6}{:>12.2f}{:>15.0f}{:>15.1f}{:>13.3f}{:>15.3f}{:>18.0f}\n",
                     replicas, trial.attained * 100, trial.meets_slo ? "yes" : "no",
                     number("request_goodput"), number("p99_ttft_ms"), number("p99_tpot_ms"),
                     number("mean_utilization"), number("replica_hours"),
                     number("tokens_per_replica_second"));
}

std::string scaling_text(const ScalingPlan& scaling, const Trial& fixed) {
  const auto [least, most] = std::ranges::minmax(scaling.windows, {}, &WindowPlan::replicas);
  const auto hours = [](const Trial& trial) { return trial.figures.at("replica_hours").to_number<double>(); };
  std::string text = row(fmt::format("{}-{}", least.replicas, most.replicas), scaling.trial);
  text += fmt::format(
      "\nWith this changing number, the fleet needs {:.1f} % of the replica hours of {} replicas.\n",
      hours(scaling.trial) / hours(fixed) * 100, fixed.replicas);
  text += "\nTokens per second within the SLO, by number of replicas:";
  for (const Capacity& one : scaling.capacity) text += fmt::format("  {}: {:.0f}", one.replicas, one.load);
  text += "\n\n   start s  tokens/s  predicted  replicas\n";
  int before = 0;
  for (std::size_t i = 0; i < scaling.windows.size(); ++i) {
    const WindowPlan& window = scaling.windows[i];
    if (window.replicas == before) continue;
    before = window.replicas;
    const std::string predicted = i == 0 ? "-" : fmt::format("{:.0f}", window.predicted);
    text += fmt::format("{:>10.0f}{:>10.0f}{:>11}{:>10}\n",
                        static_cast<double>(i) * seconds(scaling.rules.window_us), window.load, predicted,
                        window.replicas);
  }
  return text;
}

}  // namespace

json::object slo_json(const Slo& slo) {
  const auto limit = [](double ms) { return ms > 0 ? json::value(ms) : json::value(); };
  return {{"ttft_ms", limit(slo.limits.ttft_ms)},
          {"tpot_ms", limit(slo.limits.tpot_ms)},
          {"e2el_ms", limit(slo.limits.e2el_ms)},
          {"share", slo.share}};
}

json::object plan_json(const Plan& plan) {
  json::array trials;
  for (const Trial& trial : plan.sizing.trials) trials.push_back(trial_json(trial));
  json::object out{{"slo", slo_json(plan.slo)},
                   {"policy", plan.sizing.answer().figures.at("policy")},
                   {"replicas", plan.sizing.replicas},
                   {"trials", std::move(trials)}};
  if (plan.scaling) out["scaling"] = scaling_json(*plan.scaling);
  return out;
}

std::string plan_text(const Plan& plan) {
  const Sizing& sizing = plan.sizing;
  std::string text = fmt::format("{:>10}{:>11}{:>6}{:>12}{:>15}{:>15}{:>13}{:>15}{:>18}\n", "replicas",
                                 "within SLO", "meets", "goodput/s", "p99 TTFT ms", "p99 TPOT ms",
                                 "utilization", "replica hours", "tokens/replica s");
  for (const Trial& trial : sizing.trials) text += row(fmt::format("{}", trial.replicas), trial);
  if (plan.scaling) text += scaling_text(*plan.scaling, sizing.answer());
  return text + fmt::format("\n{} {} the SLO for {:g} % of the requests.\n", sizing.replicas,
                            sizing.replicas == 1 ? "replica meets" : "replicas meet", plan.slo.share * 100);
}

}  // namespace octavo::fleet
