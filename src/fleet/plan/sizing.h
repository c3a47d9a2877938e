// How many replicas some traffic needs, found by simulating it over fleets of several sizes.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <span>
#include <vector>

#include "fleet/simulate/simulation.h"

namespace octavo::fleet {

// So large a share of all requests is answered within the limits. What is refused is not.
struct Slo {
  traffic::Goodput limits;
  double share = 0.99;
};

bool met_by(const Slo& slo, const traffic::AnswerTimes& answer);

// One simulation of the traffic.
struct Trial {
  int replicas = 0;     // at the beginning
  int least = 0, most = 0;  // that took requests at a time
  double attained = 0;  // share of the requests within the limits
  bool meets_slo = false;
  // fleet/simulate/report.h, with slo_attainment and tokens_per_replica_second: prompts and answers.
  boost::json::object figures = {};
};

// progress: replicas of the trial under way, requests ended, of how many.
using TrialProgress = std::function<void(int, std::size_t, std::size_t)>;

// Errors: those of simulate().
Result<Trial> try_fleet(const SimulationOptions& options, const Trace& trace, const Slo& slo,
                        const TrialProgress& progress);

struct Sizing {
  int replicas = 0;  // the answer: meets the SLO, one less was tried and does not, or is below the least
  std::vector<Trial> trials;  // by replicas
  const Trial& answer() const;
};

// Tries the least number of replicas, then twice as many each time until the SLO is met, and halves what lies
// between. As long as more replicas serve no worse, this is the smallest number that will do. Errors: so many
// as `most` do not meet the SLO (field "slo"), and those of simulate().
Result<Sizing> size_fleet(SimulationOptions options, const Trace& trace, const Slo& slo, int least, int most,
                          const TrialProgress& progress);

}  // namespace octavo::fleet
