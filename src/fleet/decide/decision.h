// The endpoint chosen for a request, and its reasons.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Score {
  EndpointId endpoint = kNoEndpoint;
  double total = 0;  // sum of weight * score over all scorers; higher is better
};

struct Decision {
  std::vector<Score> ranking = {};  // endpoints that filters have kept, best first; may be empty
  // length of the ranking's beginning that is used: the chosen endpoint, then its fallbacks
  std::size_t picked = 0;
  // name of the profile that a request header has selected; "": there is only one profile. Valid while the
  // pipeline exists.
  std::string_view profile = {};
  // Result of one step of the profile, for /explain. Recorded only if `explain` is true.
  struct Step {
    std::string plugin;
    double weight = 1;
    std::vector<Score> scores;  // scorer: the scores; filter: the kept endpoints, with total 0
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
