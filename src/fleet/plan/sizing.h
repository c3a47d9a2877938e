// Finds the number of replicas for some traffic, by simulating fleets of several sizes.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <span>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// Service level objective: at least the fraction `share` of all requests must be within the limits. Refused
// requests are outside.
struct Slo {
  traffic::Goodput limits;
  double share = 0.99;
};

bool met_by(const Slo& slo, const traffic::AnswerTimes& answer);

struct Trial {
  int replicas = 0;         // number of replicas at the beginning
  int least = 0, most = 0;  // minimum and maximum number of replicas that accepted requests
  double attained = 0;      // fraction of requests within the limits
  bool meets_slo = false;
  // Figures of fleet/simulate/report.h, slo_attainment, and tokens_per_replica_second (prompts and answers).
  boost::json::object figures = {};
};

// progress: replicas of the current trial, finished requests, all requests.
using TrialProgress = std::function<void(int, std::size_t, std::size_t)>;

// Errors: those of simulate().
Result<Trial> try_fleet(const SimulationOptions& options, const Trace& trace, const Slo& slo,
                        const TrialProgress& progress);

// Returns the smallest number in [least, most] that meets the condition; most + 1 if none does. Doubles
// `least` until the condition is met, then bisects. Assumes that all larger numbers meet the condition, too.
Result<int> smallest_that(int least, int most, const std::function<Result<bool>(int)>& meets);

struct Sizing {
  int replicas = 0;           // smallest tried number that meets the SLO
  std::vector<Trial> trials;  // sorted by number of replicas
  const Trial& answer() const;
};

// Errors: `most` replicas miss the SLO (field "slo"); those of simulate().
Result<Sizing> size_fleet(SimulationOptions options, const Trace& trace, const Slo& slo, int least, int most,
                          const TrialProgress& progress);

}  // namespace octavo::fleet
