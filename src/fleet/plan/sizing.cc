#include "fleet/plan/sizing.h"

#include <algorithm>

#include "base/check.h"
#include "fleet/simulate/report.h"

namespace octavo::fleet {
namespace {

constexpr double kPercentiles[] = {50, 90, 99};

}  // namespace

bool met_by(const Slo& slo, const traffic::AnswerTimes& answer) {
  return answer.completed && slo.limits.met_by(traffic::times_of(answer));
}

Result<Trial> try_fleet(const SimulationOptions& options, const Trace& trace, const Slo& slo,
                        const TrialProgress& progress) {
  TRY(const SimulationResult result, simulate(options, trace, [&](std::size_t done, std::size_t all) {
        progress(options.replicas, done, all);
      }));
  const auto met = std::ranges::count_if(result.answers, [&](const auto& a) { return met_by(slo, a); });
  const auto [least, most] = std::ranges::minmax(result.samples, {}, &FleetSample::replicas);
  Trial trial{.replicas = options.replicas,
              .least = least.replicas,
              .most = most.replicas,
              .attained = static_cast<double>(met) / static_cast<double>(result.answers.size()),
              .figures = report(options, result, slo.limits, kPercentiles)};
  trial.meets_slo = trial.attained >= slo.share;
  const auto number = [&](const char* name) { return trial.figures.at(name).to_number<double>(); };
  const double tokens = number("total_input_tokens") + number("total_output_tokens");
  const double seconds = number("replica_hours") * 3600;
  trial.figures["slo_attainment"] = trial.attained;
  trial.figures["tokens_per_replica_second"] = seconds > 0 ? tokens / seconds : 0;
  return trial;
}

const Trial& Sizing::answer() const {
  const auto found = std::ranges::find(trials, replicas, &Trial::replicas);
  CHECK(found != trials.end());
  return *found;
}

Result<int> smallest_that(int least, int most, const std::function<Result<bool>(int)>& meets) {
  CHECK(1 <= least && least <= most);
  int too_few = least - 1, enough = most + 1;
  for (int next = least; enough > most && too_few < most; next = std::min(2 * next, most)) {
    TRY(const bool met, meets(next));
    (met ? enough : too_few) = next;
  }
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    TRY(const bool met, meets(middle));
    (met ? enough : too_few) = middle;
  }
  return enough;
}

Result<Sizing> size_fleet(SimulationOptions options, const Trace& trace, const Slo& slo, int least, int most,
                          const TrialProgress& progress) {
  Sizing sizing;
  TRY(sizing.replicas, smallest_that(least, most, [&](int replicas) -> Result<bool> {
        options.replicas = replicas;
        TRY(Trial trial, try_fleet(options, trace, slo, progress));
        return sizing.trials.emplace_back(std::move(trial)).meets_slo;
      }));
  if (sizing.replicas > most) {
    const Trial& best = *std::ranges::max_element(sizing.trials, {}, &Trial::attained);
    return invalid("slo",
                   "cannot be met with up to {} replicas: {:g} % of the requests must be within the SLO, but "
                   "at most {:.2f} % are, with {}",
                   most, slo.share * 100, best.attained * 100, best.replicas);
  }
  std::ranges::sort(sizing.trials, {}, &Trial::replicas);
  return sizing;
}

}  // namespace octavo::fleet
