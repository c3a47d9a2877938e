#include "fleet/plan/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

#include "fleet/plan/queue_scaler.h"

namespace octavo::fleet {
namespace {

constexpr double kTargetMax = 1 << 12;
// factor by which the oracle changes the load per replica until it has both bounds
constexpr double kWider = 1.2;
// the oracle's search ends if its upper bound is at most this multiple of its lower bound
constexpr double kNearly = 1.025;

class Comparison {
 public:
  Comparison(const SimulationOptions& options, const Trace& trace, const Slo& slo,
             const ComparisonRules& rules, const ContenderProgress& progress)
      : options_(options), trace_(trace), slo_(slo), rules_(rules), progress_(progress) {
    options_.startup_us = rules.autoscaler.scaling.startup_us;
  }

  Result<Contender> oracle(const CapacityTable& capacity) {
    TRY(const std::vector<double> loads, window_loads(trace_, scaling().window_us));
    // Load per replica in tokens/s. The search looks for the highest value with which the fleet meets the
    // SLO.
    double trusted = capacity.rows().back().load / capacity.rows().back().replicas;
    double enough = 0, too_many = 0;
    Contender best{.name = "oracle", .trial = {}};
    while (enough == 0 || too_many == 0 || too_many > enough * kNearly) {
      TRY(Trial trial, planned(loads, trusted));
      if (!trial.meets_slo && trial.least == scaling().replicas_max)
        return invalid("slo",
                       "cannot be met with up to {} replicas: {:.2f} % of the requests are within the SLO",
                       scaling().replicas_max, trial.attained * 100);
      (trial.meets_slo ? enough : too_many) = trusted;
      if (trial.meets_slo) best.trial = std::move(trial);
      if (trial.most == scaling().replicas_min) break;
      trusted = enough == 0     ? trusted / kWider
                : too_many == 0 ? trusted * kWider
                                : std::sqrt(enough * too_many);
    }
    return best;
  }

  // The search begins at the oracle's mean number of replicas, which is a lower bound for a fixed fleet.
  Result<Contender> fixed(const Contender& oracle) {
    SimulationOptions options = options_;
    options.startup_us = 0;
    const double seconds = oracle.trial.figures.at("duration").to_number<double>();
    const int least = scaling().bounded(static_cast<int>(oracle.hours() * 3600 / seconds));
    TRY(const Sizing sizing, size_fleet(options, trace_, slo_, least, scaling().replicas_max,
                                        [&](int replicas, std::size_t done, std::size_t all) {
                                          progress_(fmt::format("fixed, {}", replicas), done, all);
                                        }));
    return Contender{"fixed", sizing.answer()};
  }

  Result<Contender> autoscaler(const CapacityTable& capacity, const Predictor& predictor) {
    const std::string name = fmt::format("octavo plan live, {}", predictor.name);
    const int first = capacity.replicas_for(first_load());
    Autoscaler scaler(rules_.autoscaler, capacity, predictor, first, trace_.requests.front().arrival_us);
    return scaled(name, first, rules_.interval_us, [&](std::int64_t now_us, auto replicas) {
      return scaler.read(now_us, replicas, 0).replicas;
    });
  }

  Result<Contender> queue_scaler(const CapacityTable& capacity) {
    const int first = capacity.replicas_for(first_load());
    Contender best;
    for (double target = 1; target <= kTargetMax; target *= 2) {
      QueueScaler scaler(scaling(), target);
      TRY(Contender one,
          scaled(fmt::format("HPA, {:g} requests per replica", target), first, QueueScaler::kIntervalUs,
                 [&](std::int64_t now_us, auto replicas) { return scaler.read(now_us, replicas); }));
      if (target > 1 && !one.trial.meets_slo) break;
      best = std::move(one);
      if (!best.trial.meets_slo) break;
    }
    return best;
  }

 private:
  const ScalingRules& scaling() const { return rules_.autoscaler.scaling; }

  // Load of the first window, from which all contenders except the oracle get their initial number of
  // replicas.
  double first_load() const { return window_loads(trace_, scaling().window_us)->front(); }

  Result<Trial> planned(const std::vector<double>& loads, double trusted) {
    std::vector<int> needed;
    for (const double load : loads)
      needed.push_back(scaling().bounded(static_cast<int>(std::ceil(load / trusted))));
    SimulationOptions options = options_;
    options.replicas = needed.front();
    const std::int64_t begin_us = trace_.requests.front().arrival_us;
    for (std::size_t i = 1; i < needed.size(); ++i)
      if (needed[i] != needed[i - 1])
        options.sizes.push_back({begin_us + static_cast<std::int64_t>(i) * scaling().window_us, needed[i]});
    return try_fleet(options, trace_, slo_, [&](int, std::size_t done, std::size_t all) {
      progress_(fmt::format("oracle, {:.0f} tokens/s", trusted), done, all);
    });
  }

  template <typename Decide>
  Result<Contender> scaled(std::string name, int first, std::int64_t interval_us, Decide decide) {
    SimulationOptions options = options_;
    options.replicas = scaling().bounded(first);
    options.scaling = {.interval_us = interval_us, .share = slo_.share, .replicas = decide};
    TRY(Trial trial, try_fleet(options, trace_, slo_,
                               [&](int, std::size_t done, std::size_t all) { progress_(name, done, all); }));
    return Contender{std::move(name), std::move(trial)};
  }

  SimulationOptions options_;
  const Trace& trace_;
  const Slo& slo_;
  const ComparisonRules& rules_;
  const ContenderProgress& progress_;
};

}  // namespace

Result<std::vector<Contender>> compare_scalers(const SimulationOptions& options, const Trace& trace,
                                               const Slo& slo, const ComparisonRules& rules,
                                               const CapacityTable& capacity, const Predictor& predictor,
                                               const ContenderProgress& progress) {
  Comparison comparison(options, trace, slo, rules, progress);
  std::vector<Contender> contenders;
  TRY(contenders.emplace_back(), comparison.oracle(capacity));
  TRY(contenders.emplace_back(), comparison.fixed(contenders.front()));
  TRY(contenders.emplace_back(), comparison.autoscaler(capacity, predictor));
  TRY(contenders.emplace_back(), comparison.queue_scaler(capacity));
  return contenders;
}

std::string comparison_text(const std::vector<Contender>& contenders) {
  std::string text = fmt::format("{:<36}{:>10}{:>12}{:>15}{:>14}{:>13}{:>13}\n", "who decides", "replicas",
                                 "within SLO", "replica hours", "of oracle's", "p99 TTFT ms", "p99 TPOT ms");
  for (const Contender& one : contenders) {
    const auto number = [&](const char* name) { return one.trial.figures.at(name).to_number<double>(); };
    text += fmt::format("{:<36}{:>10}{:>10.2f} %{:>15.1f}{:>14.3f}{:>13.0f}{:>13.1f}\n", one.name,
                        fmt::format("{}-{}", one.trial.least, one.trial.most), one.trial.attained * 100,
                        one.hours(), one.hours() / contenders.front().hours(), number("p99_ttft_ms"),
                        number("p99_tpot_ms"));
  }
  return text;
}

boost::json::object comparison_json(const std::vector<Contender>& contenders) {
  boost::json::array out;
  for (const Contender& one : contenders) {
    boost::json::object row = one.trial.figures;
    row["decides"] = one.name;
    row["meets_slo"] = one.trial.meets_slo;
    row["min_replicas"] = one.trial.least;
    row["max_replicas"] = one.trial.most;
    row["of_oracle_hours"] = one.hours() / contenders.front().hours();
    out.push_back(std::move(row));
  }
  return {{"contenders", std::move(out)}};
}

}  // namespace octavo::fleet
