// Finds the number of replicas that some traffic needs, by simulating fleets of several sizes.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <span>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// At least this fraction of all requests must be within the limits. Refused requests count as outside.
struct Slo {
  traffic::Goodput limits;
  double share = 0.99;
};

bool met_by(const Slo& slo, const traffic::AnswerTimes& answer);

struct Trial {
  int replicas = 0;         // number at the beginning
  int least = 0, most = 0;  // limits of the number of replicas that accepted requests at a time
  double attained = 0;      // fraction of the requests within the limits
  bool meets_slo = false;
  // Values of fleet/simulate/report.h, and slo_attainment and tokens_per_replica_second (prompts and
  // answers).
  boost::json::object figures = {};
};

// progress: replicas of the current trial, number of finished requests, number of all requests.
using TrialProgress = std::function<void(int, std::size_t, std::size_t)>;

// Errors: as for simulate().
Result<Trial> try_fleet(const SimulationOptions& options, const Trace& trace, const Slo& slo,
                        const TrialProgress& progress);

// The smallest number in [least, most] that meets the condition; most + 1: none does. Tries `least`, doubles
// it until the condition is met, then bisects. Assumes that all larger numbers meet it, too.
Result<int> smallest_that(int least, int most, const std::function<Result<bool>(int)>& meets);

struct Sizing {
  int replicas = 0;           // the smallest number tried that meets the SLO
  std::vector<Trial> trials;  // sorted by number of replicas
  const Trial& answer() const;
};

// Errors: `most` replicas do not meet the SLO (field "slo"); as for simulate().
Result<Sizing> size_fleet(SimulationOptions options, const Trace& trace, const Slo& slo, int least, int most,
                          const TrialProgress& progress);

}  // namespace octavo::fleet
