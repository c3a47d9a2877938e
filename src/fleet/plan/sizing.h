// Finds the number of replicas that serve the traffic within an SLO, by simulating fleets of several sizes.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <span>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// Service level objective: at least the fraction `share` of all requests must be within the limits. A
// refused request counts as outside of the limits.
struct Slo {
  traffic::Goodput limits;
  double share = 0.99;
};

bool met_by(const Slo& slo, const traffic::AnswerTimes& answer);

struct Trial {
  int replicas = 0;         // number at the beginning of the simulation
  int least = 0, most = 0;  // lowest and highest number of replicas that accepted requests
  double attained = 0;
  bool meets_slo = false;
  // The figures of fleet/simulate/report.h, plus slo_attainment and tokens_per_replica_second (prompt and
  // output tokens).
  boost::json::object figures = {};
};

// Arguments: the number of replicas, the number of finished requests, and the number of all requests.
using TrialProgress = std::function<void(int, std::size_t, std::size_t)>;

Result<Trial> try_fleet(const SimulationOptions& options, const Trace& trace, const Slo& slo,
                        const TrialProgress& progress);

// Returns the smallest number in [least, most] that meets the condition, or most + 1 if none does. Doubles
// `least` until the condition is met, and then bisects. Assumes that all larger numbers also meet the
// condition.
Result<int> smallest_that(int least, int most, const std::function<Result<bool>(int)>& meets);

struct Sizing {
  int replicas = 0;           // smallest number of replicas that was tried and meets the SLO
  std::vector<Trial> trials;  // sorted by number of replicas
  const Trial& answer() const;
};

// Returns an error on "slo" if `most` replicas miss the SLO. Also returns the errors of simulate().
Result<Sizing> size_fleet(SimulationOptions options, const Trace& trace, const Slo& slo, int least, int most,
                          const TrialProgress& progress);

}  // namespace octavo::fleet
