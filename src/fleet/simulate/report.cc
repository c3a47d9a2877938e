#include "fleet/simulate/report.h"

#include <algorithm>
#include <numeric>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

void put_replicas(json::object& out, const SimulationResult& result) {
  std::int64_t steps = 0, preemptions = 0, lifetime_us = 0;
  std::vector<double> busy, prefill_busy;
  for (const ReplicaUse& use : result.replicas) {
    steps += use.steps;
    preemptions += use.preemptions;
    lifetime_us += use.lifetime_us;
    busy.push_back(share(static_cast<double>(use.busy_us), static_cast<double>(use.lifetime_us)));
    if (use.prefills) prefill_busy.push_back(busy.back());
  }
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  out["steps"] = steps;
  out["preemptions"] = preemptions;
  out["min_utilization"] = std::ranges::min(busy);
  out["mean_utilization"] = mean(busy);
  if (!prefill_busy.empty()) out["mean_prefill_utilization"] = mean(prefill_busy);
  out["max_utilization"] = std::ranges::max(busy);
  out["replica_hours"] = static_cast<double>(lifetime_us) / 3600e6;
}

}  // namespace

json::object report(const SimulationOptions& options, const SimulationResult& result,
                    const traffic::Goodput& goodput, std::span<const double> percentiles) {
  json::object out{{"backend", "simulated"},       {"policy", options.policy},
                   {"replicas", options.replicas}, {"prefill_replicas", options.prefill.replicas},
                   {"seed", options.seed},         {"num_prompts", result.answers.size()}};
  for (auto& [name, value] : figures(result.answers, result.gaps,
                                     static_cast<double>(result.duration_us) * 1e-6, goodput, percentiles))
    out[name] = value;
  const FleetSample& end = result.samples.back();
  out["cached_input_tokens"] = end.cached_tokens;
  out["prefix_cache_hit_rate"] =
      share(static_cast<double>(end.cached_tokens), static_cast<double>(end.prompt_tokens));
  put_replicas(out, result);
  return out;
}

std::string report_table(std::span<const json::object> reports) {
  std::string text;
  for (const auto& [name, unused] : reports.front()) {
    text += fmt::format("{:<24}", std::string_view(name));
    for (const json::object& one : reports) {
      const json::value& value = one.at(name);
      if (value.is_string()) text += fmt::format("{:>16}", std::string_view(value.get_string()));
      if (value.is_double()) text += fmt::format("{:>16.3f}", value.get_double());
      if (value.is_null()) text += fmt::format("{:>16}", "-");
      if (value.is_int64()) text += fmt::format("{:>16}", value.get_int64());
      if (value.is_uint64()) text += fmt::format("{:>16}", value.get_uint64());
    }
    text += '\n';
  }
  return text;
}

}  // namespace octavo::fleet
