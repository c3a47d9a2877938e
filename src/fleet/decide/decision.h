// The endpoint chosen for a request, and the reasons.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Score {
  EndpointId endpoint = kNoEndpoint;
  double total = 0;  // sum of weight x score over all scorers; higher is better
};

struct Decision {
  std::vector<Score> ranking = {};  // all remaining endpoints, best first; may be empty
  std::size_t picked = 0;           // the first n entries of the ranking are the chosen endpoint and its
                                    // fallbacks
  std::string_view profile = {};    // name of the profile that the request's header selected; "": the only
                                    // profile. Valid as long as the pipeline.
  // The result of one step of the profile, for /explain. Recorded if explain is set.
  struct Step {
    std::string plugin;
    double weight = 1;
    std::vector<Score> scores;  // a scorer's scores; for a filter, the remaining endpoints with total 0
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
