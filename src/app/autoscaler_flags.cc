#include "app/autoscaler_flags.h"

#include <fmt/format.h>

#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

Result<std::int64_t> microseconds(std::string_view field, const std::string& text, double least_s) {
  constexpr double kDayUs = 86'400e6;
  const auto us = fleet::duration_us(text);
  if (us && *us >= least_s * 1e6 && *us <= kDayUs) return static_cast<std::int64_t>(*us);
  return invalid(field, "must be a duration like 5s or 500ms, from {} s to a day, got {}", least_s,
                 quoted_text(text));
}

Result<fleet::Slo> read_slo(const AutoscalerFlags& c) {
  TRY(const traffic::Goodput limits, traffic::Goodput::parse(c.slo, "slo"));
  if (limits.e2el_ms > 0)
    return field_failure("slo", ErrorCode::unsupported,
                         "must limit ttft or tpot; e2el is not supported here");
  return fleet::Slo{limits, c.share};
}

Result<fleet::CapacityTable> read_capacity(const AutoscalerFlags& c) {
  if (c.capacity.empty() == (c.tokens_per_second == 0))
    return invalid("capacity",
                   "give either --capacity or --tokens-per-second, not both; each says how much load a "
                   "replica can serve");
  if (c.capacity.empty()) return fleet::CapacityTable({{1, c.tokens_per_second}});
  return fleet::read_capacity(c.capacity);
}

}  // namespace

Result<AutoscalerSetup> autoscaler_setup(const AutoscalerFlags& c) {
  fleet::AutoscalerRules rules = c.rules;
  fleet::ScalingRules& scaling = rules.scaling;
  if (scaling.replicas_min > scaling.replicas_max)
    return invalid("min-replicas", "must be at most --max-replicas, which is {1}, got {0}",
                   scaling.replicas_min, scaling.replicas_max);
  TRY(const fleet::Slo slo, read_slo(c));
  rules.ttft_ms = slo.limits.ttft_ms;
  rules.tpot_ms = slo.limits.tpot_ms;
  TRY(fleet::CapacityTable capacity, read_capacity(c));
  TRY(scaling.window_us, microseconds("window", c.window, 1));
  TRY(const std::int64_t interval_us, microseconds("interval", c.interval, 0.1));
  TRY(scaling.scale_down_delay_us, microseconds("scale-down-delay", c.scale_down_delay, 0));
  return AutoscalerSetup{rules, slo, std::move(capacity), fleet::find_predictor(c.predictor), interval_us};
}

void add_predictor_flag(CLI::App& command, const std::string& group, bool foresees, std::string& predictor) {
  std::vector<std::string> names;
  std::string text = "Method that predicts the load of the next window";
  for (const fleet::Predictor& one : fleet::predictors()) {
    if (one.foresees && !foresees) continue;
    names.emplace_back(one.name);
    text += fmt::format("; {}: {}", one.name, one.summary);
  }
  command.add_option("--predictor", predictor, text)
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->group(group);
}

namespace {

using AutoscalerFlag = FlagRow<AutoscalerFlags>;
fleet::ScalingRules& scaling_of(AutoscalerFlags& c) { return c.rules.scaling; }
constexpr int kReplicasMost = static_cast<int>(fleet::kEndpointsMax);

constexpr AutoscalerFlag kLoadFlags[] = {
    {"--capacity", flag::to<&AutoscalerFlags::capacity>,
     "File with the measured capacity of a replica, which octavo plan --window --output-json wrote"},
    {"--tokens-per-second",
     flag::to<&AutoscalerFlags::tokens_per_second>,
     "Prompt tokens and output tokens that one replica serves per second, instead of --capacity",
     flag::range(0.001, 1e9),
     {.no_default = true}},
    {"--slo", flag::to<&AutoscalerFlags::slo>,
     "Maximum times of a good request in milliseconds: ttft:2000 tpot:50. While they are exceeded, replicas "
     "are added"},
    {"--share", flag::to<&AutoscalerFlags::share>, "Minimum fraction of requests within the SLO",
     flag::range(0.01, 1.0)},
    {"--min-replicas", flag::to<scaling_of, &fleet::ScalingRules::replicas_min>,
     "Minimum number of replicas. With 0, the last replica stops if there are no requests, and one starts "
     "when a request waits in a router's queue (--queue-size)",
     flag::range(0, kReplicasMost)},
    {"--max-replicas", flag::to<scaling_of, &fleet::ScalingRules::replicas_max>, "Maximum number of replicas",
     flag::range(1, kReplicasMost)},
    {"--window", flag::to<&AutoscalerFlags::window>, "Time between two predictions of the load"},
    {"--interval", flag::to<&AutoscalerFlags::interval>, "Time between two reads of the replicas' metrics"},
};

constexpr AutoscalerFlag kShrinkFlags[] = {
    {"--scale-down-delay", flag::to<&AutoscalerFlags::scale_down_delay>,
     "Time for which a replica must be unnecessary before it is removed"},
    {"--down-sensitivity", flag::to<&AutoscalerFlags::rules, &fleet::AutoscalerRules::down_sensitivity>,
     "A replica that was added because of latencies is removed only when all latencies are below this "
     "fraction of the SLO",
     flag::range(0.0, 1.0)},
};

}  // namespace

void add_autoscaler_flags(CLI::App& command, const std::string& group, AutoscalerFlags& c) {
  add_flags(command, c, group, kLoadFlags);
  add_predictor_flag(command, group, false, c.predictor);
  add_flags(command, c, group, kShrinkFlags);
}

}  // namespace octavo
