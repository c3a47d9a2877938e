// Finds how many replicas some traffic needs, by simulating fleets of several sizes.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <span>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// At least this share of all requests must be within the limits. Refused requests count as outside.
struct Slo {
  traffic::Goodput limits;
  double share = 0.99;
};

bool met_by(const Slo& slo, const traffic::AnswerTimes& answer);

// One simulation of the traffic.
struct Trial {
  int replicas = 0;     // at the beginning
  int least = 0, most = 0;  // replicas that took requests at a time
  double attained = 0;  // share of the requests within the limits
  bool meets_slo = false;
  // fleet/simulate/report.h, with slo_attainment and tokens_per_replica_second: prompts and answers.
  boost::json::object figures = {};
};

// progress: replicas of the current trial, finished requests, all requests.
using TrialProgress = std::function<void(int, std::size_t, std::size_t)>;

// Errors: those of simulate().
Result<Trial> try_fleet(const SimulationOptions& options, const Trace& trace, const Slo& slo,
                        const TrialProgress& progress);

// The smallest number from `least` to `most` that meets the condition; most + 1 if none does. Tries `least`,
// doubles until the condition is met, then bisects: assumes that larger numbers meet it, too.
Result<int> smallest_that(int least, int most, const std::function<Result<bool>(int)>& meets);

struct Sizing {
  int replicas = 0;           // the smallest number tried that meets the SLO
  std::vector<Trial> trials;  // by replicas
  const Trial& answer() const;
};

// Errors: `most` replicas do not meet the SLO (field "slo"), and those of simulate().
Result<Sizing> size_fleet(SimulationOptions options, const Trace& trace, const Slo& slo, int least, int most,
                          const TrialProgress& progress);

}  // namespace octavo::fleet
