// The result of a decision: the ranking of the endpoints, and the reasons for explanations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Score {
  EndpointId endpoint = kNoEndpoint;
  double total = 0;  // sum of weight * score over all scorers
};

struct Decision {
  // endpoints that the filters have kept, best first; empty: the request gets no endpoint
  std::vector<Score> ranking = {};
  // number of endpoints at the beginning of `ranking` that may be used: the chosen endpoint and its fallbacks
  std::size_t picked = 0;
  // name of the profile that a request header selected, owned by the pipeline; "": the policy has only one
  // profile
  std::string_view profile = {};
  // Result of one filter or scorer. Recorded only if `explain` is set.
  struct Step {
    std::string plugin;
    double weight = 1;
    // of a scorer: the scores; of a filter: the endpoints that it has kept, with total 0
    std::vector<Score> scores;
  };
  bool explain = false;
  std::vector<Step> steps = {};

  EndpointId chosen() const { return ranking.empty() ? kNoEndpoint : ranking.front().endpoint; }
  void clear() {
    ranking.clear();
    picked = 0;
    profile = {};
    steps.clear();
  }
};

}  // namespace octavo::fleet
