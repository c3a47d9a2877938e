// The endpoint chosen for a request, and the reasons.
#pragma once

#include <string>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Score {
  EndpointId endpoint = kNoEndpoint;
  double total = 0;  // sum over scorers of weight x score, higher is better
};

struct Decision {
  std::vector<Score> ranking = {};  // all remaining endpoints, best first; may be empty
  std::size_t picked = 0;           // number of the ranking's first: the chosen one and its fallbacks
  // For /explain: the result of each step of the profile, filled if explain is set.
  struct Step {
    std::string plugin;
    double weight = 1;
    std::vector<Score> scores;  // a scorer's scores, or a filter's remaining endpoints with total 0
  };
  bool explain = false;
  std::vector<Step> steps = {};

  EndpointId chosen() const { return ranking.empty() ? kNoEndpoint : ranking.front().endpoint; }
  void clear() {
    ranking.clear();
    picked = 0;
    steps.clear();
  }
};

}  // namespace octavo::fleet
