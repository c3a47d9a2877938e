// Measures a server at one request rate, for `octavo bench sweep` and `octavo tune`.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "app/bench_load.h"

namespace octavo {

struct LoadRound {
  double rate;        // requests/s
  double good_share;  // fraction of all requests that meet the SLO
  boost::json::object figures;

  double figure(const char* name) const { return figures.at(name).to_number<double>(); }
};

struct RoundPlan {
  double rate;
  int seconds;  // duration of a run, which has at least 20 requests
  std::size_t number;
};

// Each round has different prompts, so that none is in the prefix cache. Round 0 first sends one request, and
// returns its error if the request fails.
Result<LoadRound> measure_round(const LoadFlags& flags, const RoundPlan& plan, const traffic::Goodput& slo,
                                const LoadTarget& target);

std::string round_heading();
std::string round_row(const LoadRound& round);
std::string plot_rounds(const std::string& title, std::vector<LoadRound> rounds);

}  // namespace octavo
